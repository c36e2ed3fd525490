"""What there is to read below one root: sessions by their keys, titles from the lists, nothing decoded."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from hashlib import blake2b

from backscroll.model import Unit
from backscroll.sources.cursor import locations
from backscroll.sources.cursor.database.decode import as_text
from backscroll.sources.cursor.database.keys import Rows
from backscroll.sources.cursor.database.record_types import Head
from backscroll.sources.cursor.prompt_log import session_of
from backscroll.sources.cursor.session.composer import SOURCE, is_agent
from backscroll.sources.cursor.user_data import Library, Shelfmark

__all__ = ["databases", "owned", "units"]


def units(library: Library) -> Iterator[Unit]:
    """Sessions with rows, newest rows first; those in workspaces' lists; then the databases themselves.

    A database that could not be read has no fingerprint: it is to be tried again, and what it held before is
    not gone.
    """
    marks = library.databases()
    for mark in marks:  # all that one database tells while it is open
        library.sessions(mark.path)
        library.lists(mark)
    taken: set[str] = set()
    for mark in marks:
        yield from _sessions(library, mark, taken)
    tabs: set[str] = set()
    busy = _spoken_for(library)
    for mark in marks:
        yield from _lists(library, mark, taken, tabs, busy)
    yield from databases(library)


def databases(library: Library) -> list[Unit]:
    """The databases themselves. What was read of one is of no later state than its fingerprint says."""
    found = [
        (mark.path, "" if mark.path in library.faults else library.token(mark.path), "index")
        for mark in library.databases()
    ]
    found += [
        (path, library.side.token(path), locations.TITLES) for path in locations.side_databases(library.root)
    ]
    return [
        Unit(SOURCE, str(library.root), str(path), fingerprint=token, kind=kind)
        for path, token, kind in found
    ]


def owned(library: Library, mark: Shelfmark) -> frozenset[str]:
    """The sessions whose rows in a database are counted by units of their own."""
    found = set(library.sessions(mark.path))
    if not mark.storage:
        return frozenset(found | library.heads().entries.keys() | _listed_only(library, found))
    return frozenset(found - library.sessions(library.global_path).keys()) if found else frozenset()


def _sessions(library: Library, mark: Shelfmark, taken: set[str]) -> Iterator[Unit]:
    """Sessions with rows, and of the global database also those that only a list knows."""
    rows = {name: each for name, each in library.sessions(mark.path).items() if name not in taken}
    if not mark.storage:
        elsewhere = {
            name for each in library.databases() if each.storage for name in library.sessions(each.path)
        }
        for name in (*library.heads().entries, *_listed_only(library, rows.keys())):
            if name not in elsewhere:
                rows.setdefault(name, Rows())
    order = sorted(rows, key=lambda name: (-rows[name].newest, name))
    if order:
        library.warehouse(mark.path).expect([(name, rows[name].bubbles) for name in order])
    taken.update(order)
    for name in order:
        entry = library.entry(name)
        head = entry.head if entry else Head()
        found = rows[name]
        title = as_text(head.name).strip() or None
        # A title may come later, and elsewhere, than everything else of a session.
        late = library.side.title(name) if title is None else None
        yield Unit(
            source=SOURCE,
            root=str(library.root),
            path=str(mark.path),
            key=name,
            fingerprint=_fingerprint(found.token, entry.token if entry else "", *(late or ())),
            size=found.bubbles + bool(found.data),
            kind="agent" if is_agent(name, head, entry) else "session",
            session_id=name,
            title=title,
        )


def _listed_only(library: Library, known: AbstractSet[str]) -> set[str]:
    """Sessions that only workspaces' own lists name, where these are the lists to believe."""
    if library.heads().source != "none":
        return set()
    found: set[str] = set()
    for mark in library.databases():
        if mark.storage:
            lists = library.lists(mark)
            found |= lists.entries.keys() - lists.inline.keys()
    return found - known


def _lists(
    library: Library, mark: Shelfmark, taken: set[str], tabs: set[str], busy: set[str]
) -> Iterator[Unit]:
    """Conversations that lie in a database's lists, and the log of prompts where there is nothing else."""
    lists = library.lists(mark)
    root, path = str(library.root), str(mark.path)
    spoken = False
    for tab in lists.tabs:
        session = f"{mark.storage}-{tab.id}" if tab.id in tabs and mark.storage else tab.id
        tabs.add(tab.id)
        spoken = True
        yield Unit(SOURCE, root, path, f"tab:{tab.id}", tab.token, 1, "session", session, tab.title)
    for name, token in lists.inline.items():
        spoken = True
        if name in taken:
            continue
        taken.add(name)
        title = as_text(lists.entries[name].head.name).strip() or None
        yield Unit(SOURCE, root, path, f"composer:{name}", token, 1, "session", name, title)
    if lists.has_log and not spoken and mark.storage and mark.storage not in busy:
        yield Unit(
            SOURCE, root, path, "prompts", library.token(mark.path), 1, "prompts", session_of(mark.storage)
        )


def _spoken_for(library: Library) -> set[str]:
    """The workspaces to which a session with rows belongs, as far as the lists tell."""
    with_rows = library.sessions(library.global_path).keys()
    found = {entry.workspace_id for name, entry in library.heads().entries.items() if name in with_rows}
    for mark in library.databases():
        lists = library.lists(mark)
        if mark.storage and any(name in with_rows for name in (*lists.entries, *lists.shown)):
            found.add(mark.storage)
    return found


def _fingerprint(*parts: str) -> str:
    return blake2b("|".join(parts).encode(), digest_size=12).hexdigest()
