"""What there is to read below one root: sessions by their keys, titles from the lists, nothing decoded."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from hashlib import blake2b

from backscroll.model import Unit
from backscroll.sources.cursor import locations
from backscroll.sources.cursor.database.decode import as_text
from backscroll.sources.cursor.database.keys import Rows
from backscroll.sources.cursor.database.record_types import ComposerHeader
from backscroll.sources.cursor.prompt_log import log_session_id
from backscroll.sources.cursor.session.composer import SOURCE, is_subagent_entry
from backscroll.sources.cursor.user_data import DatabaseFile, UserData

__all__ = ["databases", "owned", "units"]


def units(user_data: UserData) -> Iterator[Unit]:
    """Sessions with rows, newest rows first; those in workspaces' lists; then the databases themselves.

    A database that could not be read has no fingerprint: it is to be tried again, and what it held before is
    not gone.
    """
    files = user_data.databases()
    for file in files:  # all that one database tells while it is open
        user_data.sessions(file.path)
        user_data.lists(file)
    taken: set[str] = set()
    for file in files:
        yield from _sessions(user_data, file, taken)
    tabs: set[str] = set()
    busy = _spoken_for(user_data)
    for file in files:
        yield from _lists(user_data, file, taken, tabs, busy)
    yield from databases(user_data)


def databases(user_data: UserData) -> list[Unit]:
    """The databases themselves. What was read of one is of no later state than its fingerprint says."""
    found = [
        (file.path, "" if file.path in user_data.faults else user_data.token(file.path), "index")
        for file in user_data.databases()
    ]
    found += [
        (path, user_data.side_databases.token(path), locations.TITLES)
        for path in locations.side_databases(user_data.root)
    ]
    return [
        Unit(SOURCE, str(user_data.root), str(path), fingerprint=token, kind=kind)
        for path, token, kind in found
    ]


def owned(user_data: UserData, file: DatabaseFile) -> frozenset[str]:
    """The sessions whose rows in a database are counted by units of their own."""
    found = set(user_data.sessions(file.path))
    if not file.storage:
        return frozenset(found | user_data.global_list().entries.keys() | _listed_only(user_data, found))
    return frozenset(found - user_data.sessions(user_data.global_path).keys()) if found else frozenset()


def _sessions(user_data: UserData, file: DatabaseFile, taken: set[str]) -> Iterator[Unit]:
    """Sessions with rows, and of the global database also those that only a list knows."""
    rows = {name: each for name, each in user_data.sessions(file.path).items() if name not in taken}
    if not file.storage:
        elsewhere = {
            name for each in user_data.databases() if each.storage for name in user_data.sessions(each.path)
        }
        for name in (*user_data.global_list().entries, *_listed_only(user_data, rows.keys())):
            if name not in elsewhere:
                rows.setdefault(name, Rows())
    order = sorted(rows, key=lambda name: (-rows[name].newest, name))
    if order:
        user_data.row_loader(file.path).expect([(name, rows[name].bubbles) for name in order])
    taken.update(order)
    for name in order:
        entry = user_data.entry(name)
        header = entry.header if entry else ComposerHeader()
        found = rows[name]
        title = as_text(header.name).strip() or None
        # A title may come later, and elsewhere, than everything else of a session.
        late = user_data.side_databases.title(name) if title is None else None
        yield Unit(
            source=SOURCE,
            root=str(user_data.root),
            path=str(file.path),
            key=name,
            fingerprint=_fingerprint(found.token, entry.token if entry else "", *(late or ())),
            size=found.bubbles + bool(found.data),
            kind="agent" if is_subagent_entry(name, header, entry) else "session",
            session_id=name,
            title=title,
        )


def _listed_only(user_data: UserData, known: AbstractSet[str]) -> set[str]:
    """Sessions that only workspaces' own lists name, where these are the lists to believe."""
    if user_data.global_list().source != "none":
        return set()
    found: set[str] = set()
    for file in user_data.databases():
        if file.storage:
            lists = user_data.lists(file)
            found |= lists.entries.keys() - lists.inline.keys()
    return found - known


def _lists(
    user_data: UserData, file: DatabaseFile, taken: set[str], tabs: set[str], busy: set[str]
) -> Iterator[Unit]:
    """Conversations that lie in a database's lists, and the log of prompts where there is nothing else."""
    lists = user_data.lists(file)
    root, path = str(user_data.root), str(file.path)
    spoken = False
    for tab in lists.tabs:
        session = f"{file.storage}-{tab.id}" if tab.id in tabs and file.storage else tab.id
        tabs.add(tab.id)
        spoken = True
        yield Unit(SOURCE, root, path, f"tab:{tab.id}", tab.token, 1, "session", session, tab.title)
    for name, token in lists.inline.items():
        spoken = True
        if name in taken:
            continue
        taken.add(name)
        title = as_text(lists.entries[name].header.name).strip() or None
        yield Unit(SOURCE, root, path, f"composer:{name}", token, 1, "session", name, title)
    if lists.has_log and not spoken and file.storage and file.storage not in busy:
        yield Unit(
            SOURCE,
            root,
            path,
            "prompts",
            user_data.token(file.path),
            1,
            "prompts",
            log_session_id(file.storage),
        )


def _spoken_for(user_data: UserData) -> set[str]:
    """The workspaces to which a session with rows belongs, as far as the lists tell."""
    with_rows = user_data.sessions(user_data.global_path).keys()
    found = {
        entry.workspace_id for name, entry in user_data.global_list().entries.items() if name in with_rows
    }
    for file in user_data.databases():
        lists = user_data.lists(file)
        if file.storage and any(name in with_rows for name in (*lists.entries, *lists.shown)):
            found.add(file.storage)
    return found


def _fingerprint(*parts: str) -> str:
    return blake2b("|".join(parts).encode(), digest_size=12).hexdigest()
