"""Find workspace folders that no longer exist, and guess where they went.

What is known about an old folder comes from the archive: ids that an editor computed from its inode, commits
that sessions made, pull requests, edited files, and its name.
"""

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePath

from backscroll.archive.archive import Archive
from backscroll.archive.query.workspaces import WorkspaceFacts
from backscroll.commits.scan import commit_call
from backscroll.errors import RepositoryError
from backscroll.git.repository import known_commits, remote_urls
from backscroll.model.text import pluralize
from backscroll.model.workspace import MoveCandidate, MovedWorkspace, MovedWorkspaces, MoveEvidence
from backscroll.sources import named, names

# The larger, the stronger. Unrelated folders can have the same name and some of the same files.
_LEVELS = {"inode": 4, "commit": 3, "remote": 3, "files": 2, "name": 1}
_MAX_COMPARED_FILES = 30
_MIN_EQUAL_FILES = 2
_MAX_COMMITS = 20
_MAX_CANDIDATES = 10
_MULTI_ROOT_SUFFIX = ".code-workspace"
_PULL_REQUEST = re.compile(r"^https?://[^/]+/(.+?)/(?:-/)?(?:pull|pulls|pull-requests|merge_requests)/")
_REMOTE = re.compile(r"[:/]([^/:]+/[^/:]+?)(?:\.git)?/*$")

_NEAR_DEPTH = 2
_BESIDE_DEPTH = 1
_GIVEN_DEPTH = 6
_MAX_FOLDERS = 20_000  # per searched folder: about half a second
_SKIPPED_NAMES = frozenset({"node_modules", "__pycache__", "venv", "site-packages", "Library"})
_SKIPPED_PATHS = frozenset({"/proc", "/sys", "/dev", "/run"})


def find_moved(archive: Archive, search: Sequence[Path] = ()) -> MovedWorkspaces:
    """Return the folders that are gone and have sessions, with their possible new places.

    Compared are the folders around each old one, those beside all known workspaces, and those below
    ``search``. Nothing is written.
    """
    known = archive.workspaces.with_movable_sessions()
    places = [Path(path) for path in known if _is_local_folder(path)]
    gone = [place for place in places if not os.path.lexists(place)]
    if not gone:
        return MovedWorkspaces(workspaces=(), searched=(), is_search_complete=True)
    folders = _FolderSearch()
    shared = [path for place in places if place.is_dir() for path in folders.beside(place)]
    shared += [path for folder in search for path in folders.below(folder.absolute())]
    found = []
    for place in gone:
        old = _OldFolder(place, archive.workspaces.facts(str(place)), archive, folders)
        sources = known[str(place)]
        found.append(
            MovedWorkspace(
                path=str(place),
                session_count=sum(sources.values()),
                sources=tuple(sources),
                candidates=tuple(old.candidates([*folders.near(place), *shared])),
            )
        )
    return MovedWorkspaces(
        workspaces=tuple(found), searched=tuple(folders.searched), is_search_complete=folders.is_complete
    )


def _is_local_folder(path: str) -> bool:
    return Path(path).is_absolute() and not path.endswith(_MULTI_ROOT_SUFFIX)


class _FolderSearch:
    """Lists folders. Each folder is read once. Hidden folders and links are skipped.

    Folders inside a repository are not listed: a moved project is rarely inside another one.
    """

    def __init__(self) -> None:
        self.is_complete = True
        self._searched: dict[tuple[str, int], list[str]] = {}
        self._names: dict[str, frozenset[str]] = {}

    @property
    def searched(self) -> list[str]:
        """The folders below which folders were listed."""
        return sorted({folder for folder, _ in self._searched})

    def near(self, folder: Path) -> list[str]:
        """Return the folders around one that is gone.

        Two levels below the nearest parent that exists, and below its parent unless that is the top.
        """
        parent = _nearest_existing(folder)
        found = self._list(str(parent), _NEAR_DEPTH)
        if len(parent.parts) > 2:
            found = [*found, *self._list(str(parent.parent), _NEAR_DEPTH)]
        return found

    def beside(self, folder: Path) -> list[str]:
        """Return a folder and the folders beside it."""
        return self._list(str(folder.parent), _BESIDE_DEPTH)

    def below(self, folder: Path) -> list[str]:
        """Return the folders below one that the user named, up to six levels."""
        return self._list(str(folder), _GIVEN_DEPTH)

    def names_in(self, folder: str) -> frozenset[str]:
        """Return the names of everything in a folder; none if it cannot be read."""
        if folder not in self._names:
            self._read(folder)
        return self._names[folder]

    def _list(self, folder: str, depth: int) -> list[str]:
        if (folder, depth) not in self._searched:
            self._searched[folder, depth] = list(self._walk(folder, depth))
        return self._searched[folder, depth]

    def _walk(self, folder: str, depth: int) -> Iterator[str]:
        """Yield folders, those of the first level first."""
        count = 0
        waiting = deque([(folder, 1)])
        while waiting:
            parent, level = waiting.popleft()
            for child in self._read(parent):
                count += 1
                if count > _MAX_FOLDERS:
                    self.is_complete = False
                    return
                yield child
                if level < depth and ".git" not in self.names_in(child):
                    waiting.append((child, level + 1))

    def _read(self, folder: str) -> list[str]:
        """Return the visible subfolders, and remember all names."""
        names: list[str] = []
        found: list[str] = []
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                names.append(entry.name)
                is_visible = not entry.name.startswith(".") and entry.name not in _SKIPPED_NAMES
                with suppress(OSError):
                    if (
                        is_visible
                        and entry.path not in _SKIPPED_PATHS
                        and entry.is_dir(follow_symlinks=False)
                    ):
                        found.append(entry.path)
        self._names[folder] = frozenset(names)
        return sorted(found)


def _nearest_existing(folder: Path) -> Path:
    """Return the nearest parent of a folder that exists."""
    return next((parent for parent in folder.parents if parent.is_dir()), Path(folder.anchor))


class _OldFolder:
    """A folder that is gone, and how to recognize it."""

    def __init__(self, place: Path, facts: WorkspaceFacts, archive: Archive, folders: _FolderSearch) -> None:
        self._place = place
        self._folders = folders
        self._storage_ids = set(facts.storage_ids)
        found = (named(name).folder_ids() for name in names())
        self._id_sources = [one for one in found if one is not None]
        self._files = _relative_files(facts, place)
        # A folder inside a repository that still exists has the same commits as the folders beside it.
        is_repository = not any((parent / ".git").exists() for parent in place.parents)
        self._commits = _commits(archive, facts) if is_repository else []
        self._repositories = {one[1] for url in facts.pull_requests if (one := _PULL_REQUEST.match(url))}

    def candidates(self, folders: Iterable[str]) -> list[MoveCandidate]:
        """Return the folders with evidence, the strongest first."""
        found = []
        for folder in dict.fromkeys(self._new_places(folders)):
            evidence = sorted(self._evidence(folder), key=lambda one: -_LEVELS[one.kind])
            if evidence:
                found.append(MoveCandidate(folder, tuple(evidence), _LEVELS[evidence[0].kind]))
        found.sort(key=lambda one: (-one.level, -len(one.evidence), one.path))
        return found[:_MAX_CANDIDATES]

    def _new_places(self, folders: Iterable[str]) -> Iterator[str]:
        """Yield folders, and the folders below them that the old one would be if its parent was moved."""
        gone_parts = self._place.relative_to(_nearest_existing(self._place)).parts
        for folder in folders:
            yield folder
            for count in range(1, len(gone_parts)):
                inner = Path(folder, *gone_parts[count:])
                if gone_parts[count] in self._folders.names_in(folder) and inner.is_dir():
                    yield str(inner)

    def _evidence(self, folder: str) -> Iterator[MoveEvidence]:
        if self._has_same_inode(folder):
            yield MoveEvidence("inode", "is the same folder, renamed")
        inside = self._folders.names_in(folder)
        equal = [path for path in self._files if path.parts[0] in inside and Path(folder, path).exists()]
        has_same_name = PurePath(folder).name == self._place.name
        if ".git" in inside and (equal or not self._files):
            yield from self._git_evidence(Path(folder))
        is_enough = len(equal) >= _MIN_EQUAL_FILES or has_same_name
        if equal and is_enough and 2 * len(equal) >= len(self._files):
            count = f"{len(equal)} of {pluralize(len(self._files), 'edited file')}"
            yield MoveEvidence("files", f"contains {count}")
        if has_same_name and (equal or len(self._files) < _MIN_EQUAL_FILES):
            yield MoveEvidence("name", "has the same name")

    def _has_same_inode(self, folder: str) -> bool:
        if not self._storage_ids:
            return False
        with suppress(OSError):
            stat = Path(folder).stat()
            return any(one.folder_id(str(self._place), stat) in self._storage_ids for one in self._id_sources)
        return False

    def _git_evidence(self, folder: Path) -> Iterator[MoveEvidence]:
        with suppress(RepositoryError):  # no git, or a damaged repository
            found = known_commits(folder, self._commits) if self._commits else []
            if found:
                yield MoveEvidence("commit", f"contains the commit {found[0][:10]} of a session")
            remotes = remote_urls(folder) if self._repositories else []
            named_by = {one[1] for url in remotes if (one := _REMOTE.search(url))}
            for repository in sorted(named_by & self._repositories):
                yield MoveEvidence("remote", f"has the git remote {repository}")


def _relative_files(facts: WorkspaceFacts, place: Path) -> list[PurePath]:
    """Return the files below the folder that sessions edited most often."""
    found: dict[PurePath, None] = {}
    for text in facts.edited_paths:
        path = PurePath(text)
        if path.is_absolute() and path.is_relative_to(place):
            path = path.relative_to(place)
        if path.parts and not path.is_absolute() and ".." not in path.parts:
            found[path] = None
        if len(found) == _MAX_COMPARED_FILES:
            break
    return list(found)


def _commits(archive: Archive, facts: WorkspaceFacts) -> list[str]:
    """Return hashes of commits that the newest sessions of a folder made, as git printed them."""
    found: dict[str, None] = {}
    for fragment_id in facts.fragment_ids:
        for _, message in archive.edit_scans.tool_messages(fragment_id):
            call = commit_call(message.tool) if message.tool is not None else None
            found |= dict.fromkeys((*call.hashes, *call.shown[:1]) if call is not None else ())
        if len(found) >= _MAX_COMMITS:
            break
    return list(found)[:_MAX_COMMITS]
