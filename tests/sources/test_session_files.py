"""A source with a file per session lists, archives and edits the files that it declares."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.config import Machine
from backscroll.model.problem import Problem
from backscroll.model.store import SESSION, StoreKind, Unit, UnitKind
from backscroll.model.stream import Checkpoint, Item, RecordCounts
from backscroll.sources import session_files
from backscroll.sources.json_edits import Members
from backscroll.sources.protocols import UNREADABLE
from backscroll.sources.session_file_changes import SessionFileBackup
from backscroll.sources.session_files import UNNAMED, FilePattern, SessionFiles

ID = "0f3c9a12-0000-4000-8000-000000000001"
OTHER = "0f3c9a12-0000-4000-8000-000000000002"
DATED = f"sessions/2026/10/03/rollout-2026-10-03-{ID}.jsonl"
EVENTS = f"state/{OTHER}/events.jsonl"
FILES = (
    DATED,
    EVENTS,
    f"state/{OTHER}/workspace.yaml",
    f"state/{OTHER}/files/report/a.md",
    "tmp/shop/chats/session-1.json",
    "tmp/shop/chats/abc/agent-1.jsonl",
    "prompts.db",
    "prompts.db-wal",
    "names.jsonl",
)
OTHERS = ("sessions/2026/other.jsonl", "tmp/shop/logs.json", "auth.json", f"state/{OTHER}/lock", "state/x/y")


class Tree(SessionFiles):
    """Files in folders of dates, in a folder per session, and as whole documents."""

    name = "tree"
    platform = "tree"
    stores = (StoreKind("tree"),)
    unit_kinds = (SESSION, UnitKind("agent"), UnitKind("index", is_single=False), UNNAMED, UNREADABLE)
    files = (
        FilePattern("sessions/**/rollout-*-{uuid}.jsonl"),
        FilePattern("state/{uuid}/events.jsonl", beside=("workspace.yaml",), sides=("state/{uuid}/files",)),
        FilePattern("tmp/*/chats/session-*.json"),
        FilePattern("tmp/*/chats/{id}/*.jsonl", kind="agent"),
        FilePattern("prompts.db", kind="index", beside=("prompts.db-wal",), is_database=True),
    )
    other_files = ("names.jsonl",)

    def roots(self, machine: Machine) -> list[Path]:
        return []

    def parse(self, unit: Unit, since: Checkpoint | None) -> Iterator[Item]:
        Path(unit.path).read_bytes()
        yield RecordCounts()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (*FILES, *OTHERS):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"type": "note", "cwd": "/a"}\n', encoding="utf-8")
    return tmp_path


def listed(root: Path, *changed: str) -> list[tuple[str, str, str | None]]:
    source = Tree()
    units = source.units_at(root, [str(root / path) for path in changed]) if changed else source.units(root)
    return sorted(
        (Path(unit.path).relative_to(root).as_posix(), unit.kind, unit.session_id) for unit in units
    )


def unit_at(root: Path, path: str) -> Unit:
    (unit,) = Tree().units_at(root, [str(root / path)])
    return unit


def test_files_that_match_a_pattern_are_units_with_their_kinds_and_ids(root: Path) -> None:
    assert listed(root) == [
        ("prompts.db", "index", None),
        (DATED, "session", ID),
        (EVENTS, "session", OTHER),
        ("tmp/shop/chats/abc/agent-1.jsonl", "agent", "abc"),
        ("tmp/shop/chats/session-1.json", "session", None),
    ]


@pytest.mark.parametrize(
    ("changed", "affected"),
    [
        (DATED, [DATED]),
        (f"state/{OTHER}/workspace.yaml", [EVENTS]),
        (f"state/{OTHER}", [EVENTS]),
        ("sessions/2026/10", [DATED]),
        ("prompts.db-wal", ["prompts.db"]),
        ("tmp/shop/chats", ["tmp/shop/chats/abc/agent-1.jsonl", "tmp/shop/chats/session-1.json"]),
        (f"state/{OTHER}/lock", []),
        ("auth.json", []),
        ("gone/for/good", []),
    ],
)
def test_a_change_of_a_path_affects_the_units_at_it(root: Path, changed: str, affected: list[str]) -> None:
    assert [path for path, _, _ in listed(root, changed)] == affected


def test_a_file_found_by_its_path_has_the_same_fingerprint_as_in_the_list(root: Path) -> None:
    for unit in Tree().units(root):
        assert Tree().units_at(root, [unit.path]) == [unit]


def test_a_change_beside_a_file_changes_its_fingerprint_and_that_of_its_folder(root: Path) -> None:
    before, folders = unit_at(root, EVENTS), {one.path: one.fingerprint for one in Tree().folders(root)}
    os.utime(root / f"state/{OTHER}/workspace.yaml", (1, 1))
    assert unit_at(root, EVENTS).fingerprint != before.fingerprint
    changed = {one.path for one in Tree().folders(root) if folders[one.path] != one.fingerprint}
    assert changed == {f"{root}/state/{OTHER}/"}


def test_a_file_from_before_1970_has_a_negative_time(root: Path) -> None:
    os.utime(root / DATED, (-5, -5))
    assert unit_at(root, DATED).modified_at == -5_000_000_000


def test_links_to_folders_are_followed_only_if_a_pattern_names_them(root: Path) -> None:
    (root / "sessions/2026").rename(root / "elsewhere")
    (root / "sessions/2026").symlink_to(root / "elsewhere")
    assert DATED not in [path for path, _, _ in listed(root)]
    assert listed(root, DATED) == []
    (root / "sessions/2026").unlink()
    (root / "sessions").rmdir()
    (root / "sessions").symlink_to(root / "elsewhere")
    assert listed(root)[1] == (DATED.replace("2026/", "", 1), "session", ID)


def test_a_folder_that_cannot_be_listed_is_a_unit_and_hides_nothing_else(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_folder(path: str, flags: int) -> int:
        if path == str(root / "sessions"):
            raise PermissionError
        return os.open(path, flags)

    before = listed(root)
    monkeypatch.setattr(session_files, "_open", open_folder)
    unreadable = {one.path for one in Tree().folders(root) if one.is_unreadable}
    assert unreadable == {f"{root}/sessions/"}
    assert listed(root) == sorted(
        [*(one for one in before if one[0] != DATED), ("sessions", "unreadable", None)]
    )


def test_a_name_that_is_not_utf8_is_a_problem(root: Path) -> None:
    os.close(os.open(os.fsencode(root / "tmp/shop/chats/session-") + b"\xff.json", os.O_CREAT))
    unit = next(unit for unit in Tree().units(root) if unit.kind == "unnamed")
    problem, _ = Tree().read(unit)
    assert isinstance(problem, Problem)
    assert problem.code == "invalid-file-name"
    assert not Tree().keeps_file(unit)


def test_a_file_that_is_gone_is_a_problem(root: Path) -> None:
    unit = unit_at(root, DATED)
    Path(unit.path).unlink()
    problem, _ = Tree().read(unit)
    assert isinstance(problem, Problem)
    assert problem.code == "unreadable-file"


def test_the_archive_keeps_a_session_with_the_files_beside_it_and_its_side_files(root: Path) -> None:
    unit = unit_at(root, EVENTS)
    assert Tree().keeps_file(unit)
    rows = [f"state/{OTHER}/workspace.yaml", f"state/{OTHER}/files/report/a.md"]
    assert [row.path for row in Tree().raw_rows(unit)] == rows
    database = unit_at(root, "prompts.db")
    assert not Tree().keeps_file(database)
    assert not list(Tree().raw_rows(database))


@pytest.mark.parametrize("path", [DATED, "tmp/shop/chats/session-1.json"])
def test_records_of_lines_and_of_documents_have_their_type(root: Path, path: str) -> None:
    assert list(Tree().raw_records(unit_at(root, path))) == [("note", {"type": "note", "cwd": "/a"})]


def test_the_first_folders_of_the_patterns_are_watched(root: Path) -> None:
    watched = [path.relative_to(root).as_posix() for path in Tree().watched_paths(root)]
    assert watched == ["sessions", "state", "tmp", "prompts.db", "prompts.db-wal"]


def test_a_backup_contains_the_declared_files_and_a_restore_writes_no_others(root: Path) -> None:
    backup = SessionFileBackup(Tree())
    files = {Path(one.path).relative_to(root).as_posix(): one for one in backup.backup_files(root)}
    assert sorted(files) == sorted(set(FILES) - {"prompts.db-wal"})
    assert [name for name, one in files.items() if one.is_database] == ["prompts.db"]
    assert files[f"state/{OTHER}/workspace.yaml"].session_id == OTHER
    assert all(map(backup.is_history_path, files))
    assert not any(map(backup.is_history_path, OTHERS))


# Members of records

MEMBERS = Members({"": ("cwd",), "turn": ("payload.cwd", "payload.roots")})
NEW = {"/a": "/b"}.get


def test_strings_in_declared_members_are_replaced_and_all_other_bytes_stay() -> None:
    payload = '{"roots":["/a", "/c"],"note":"/a","cwd":"/a"}'
    text = f'{{ "type":"turn", "cwd" : "/a","text":"/a","payload":{payload} }}\n'
    expected = text.replace('"cwd" : "/a"', '"cwd" : "/b"').replace('["/a",', '["/b",')
    assert MEMBERS.edit(text, NEW) == expected.replace('"cwd":"/a"', '"cwd":"/b"')


def test_members_of_another_type_stay() -> None:
    assert (
        MEMBERS.edit('{"type":"note","payload":{"cwd":"/a"}}', NEW)
        == '{"type":"note","payload":{"cwd":"/a"}}'
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.just("/a"),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("payload"), inner),
)


@given(JSON)
def test_any_record_without_a_declared_string_stays_byte_for_byte(document: object) -> None:
    text = json.dumps({"x": document, "type": "turn", "payload": document})
    edited = MEMBERS.edit(text, lambda _: None)
    assert edited == text
    assert json.loads(MEMBERS.edit(text, NEW))["x"] == document
