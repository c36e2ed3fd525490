"""What to restore, and where."""

from pathlib import Path

from msgspec import Struct

from backscroll.errors import RestoreError
from backscroll.model.safekeeping.backup import BackupFile, BackupManifest, BackupRoot
from backscroll.model.safekeeping.path_maps import PathMaps

__all__ = ["RestoreOptions", "involved_roots", "is_selected", "target_root", "wanted_sessions"]


class RestoreOptions(Struct, frozen=True, kw_only=True):
    """What to restore, and where."""

    archive_folder: Path
    source: str | None = None
    sessions: tuple[str, ...] = ()  # refs, or prefixes of ids
    archived_sessions: tuple[str, ...] = ()  # refs of selected sessions that only the archive contains
    maps: tuple[tuple[str, str], ...] = ()  # old and new folder
    is_resolved: bool = False  # the sessions are refs with complete ids
    force: bool = False  # replace what differs
    known_roots: frozenset[Path] = frozenset()  # the folders of the tools on this machine
    home: Path = Path("/")

    def is_trusted(self, folder: Path) -> bool:
        """Return whether a folder can be one of a tool.

        It is a known one, or it has the name of a known one and is in the home folder or in a mapped one.
        """
        if folder in self.known_roots:
            return True
        names = {root.name for root in self.known_roots}
        has_name = folder.name in names or any(folder.name.startswith(f"{name}-") for name in names)
        parents = [self.home, *(Path(new).absolute() for _, new in self.maps)]
        return has_name and any(folder.is_relative_to(parent) for parent in parents)

    @property
    def path_maps(self) -> PathMaps:
        return PathMaps((old, str(Path(new).absolute())) for old, new in self.maps)


def wanted_sessions(manifest: BackupManifest, options: RestoreOptions) -> frozenset[str] | None:
    """Return the ids of the selected sessions; None if all are selected. Raises `RestoreError`."""
    if not options.sessions:
        return None
    known = {session_id for file in manifest.files for session_id in file.session_ids}
    sources = {root.source for root in manifest.roots}
    wanted: set[str] = set()
    for ref in options.sessions:
        source, _, prefix = ref.rpartition(":")
        if source in sources and prefix not in known and options.is_resolved:
            wanted.add(prefix)  # some files do not name their sessions
            continue
        found = {session_id for session_id in known if prefix and session_id.startswith(prefix)}
        if prefix in found:
            found = {prefix}
        if len(found) != 1:
            problem = "matches several sessions. Use a longer prefix" if found else "matches no session"
            raise RestoreError(f"{ref!r} {problem} of the backup.", ref)
        wanted |= found
    return frozenset(wanted)


def involved_roots(
    manifest: BackupManifest, options: RestoreOptions, wanted: frozenset[str] | None
) -> frozenset[str]:
    """Return the names of the roots that may contain something of the selected sessions."""
    sources = {ref.rpartition(":")[0] for ref in options.sessions}
    return frozenset(
        file.root for file in manifest.files if wanted is None or not wanted.isdisjoint(file.session_ids)
    ) | {root.name for root in manifest.roots if root.source in sources}


def is_selected(
    manifest: BackupManifest, file: BackupFile, options: RestoreOptions, wanted: frozenset[str] | None
) -> bool:
    """Return whether a file is restored. Files with several sessions are decided later."""
    source = next(root.source for root in manifest.roots if root.name == file.root)
    if options.source is not None and source != options.source:
        return False
    if wanted is None:
        return True
    return file.kind != "archive" and (file.is_shared or not wanted.isdisjoint(file.session_ids))


def target_root(root: BackupRoot, options: RestoreOptions) -> Path:
    """Return the folder to which the files of a root are restored.

    Raises `RestoreError` if it cannot be a folder of the tool: a backup could name any folder.
    """
    folder = Path(options.path_maps.path(root.path) or root.path)
    is_named = any(Path(old) == Path(root.path) for old, _ in options.maps)
    if not folder.is_absolute():
        raise RestoreError(
            f"{root.path} is not a folder on this system.",
            root.path,
            hint=f"Name the new folder with --map '{root.path}=NEW'.",
        )
    if ".." in folder.parts or not (is_named or options.is_trusted(folder)):
        raise RestoreError(
            f"{folder} is not a folder of {root.source} on this machine.",
            folder,
            hint=f"Name the folder with --map '{root.path}=NEW', or with --root {root.source}={folder}.",
        )
    return folder
