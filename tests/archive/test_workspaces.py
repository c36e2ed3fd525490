"""Filters by workspace, branch and model."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backscroll.archive.connection import MIGRATIONS, connect
from backscroll.archive.query.sessions import SessionQueries
from backscroll.archive.query.workspaces import workspace_hashes
from backscroll.config import NamedRoot
from backscroll.errors import WorkspaceNotFoundError
from backscroll.history.history import History
from backscroll.model.session import Filter
from backscroll.model.workspace import Workspace, workspace_hash
from backscroll.testing.claude_code import Transcript

FERRY = Workspace("/home/zoe/work/ferry")
OTHER_FERRY = Workspace("/home/zoe/play/Ferry")
REMOTE = Workspace("/srv/ferry-box", authority="ssh-remote+gauge-box")
SAME_PATH_THERE = Workspace("/home/zoe/work/ferry", authority="ssh-remote+gauge-box")
WINDOWS = Workspace("C:\\Users\\Zoe\\work\\web")
WEB = Workspace("/home/zoe/web")
ALL = (FERRY, OTHER_FERRY, REMOTE, SAME_PATH_THERE, WINDOWS, WEB)


@pytest.fixture
def db(tmp_path: Path) -> sqlite3.Connection:
    db = connect(tmp_path / "archive.db")
    for number, workspace in enumerate(ALL * 2):
        db.execute(
            "insert into conversations (id, external_id, platform, workspace_hash, workspace_name,"
            " workspace_path, started_at, number, source, metadata, is_gone)"
            " values (?1, ?1, 'claude_code', ?2, ?3, ?4, '2026-10-01', ?5, 'claude-code',"
            " json_object('workspace_authority', nullif(?6, '')), ?7)",
            [
                str(number),
                workspace.hash,
                workspace.name,
                workspace.path,
                number,
                workspace.authority,
                number < len(ALL),
            ],
        )
    return db


def matching_ids(db: sqlite3.Connection, filter_: Filter) -> tuple[set[int], set[int]]:
    return SessionQueries(db).matching_ids(filter_)


@pytest.mark.parametrize(
    ("name", "workspaces"),
    [
        ("/home/zoe/work/ferry", {FERRY, SAME_PATH_THERE}),
        ("/home/zoe/work/ferry/", {FERRY, SAME_PATH_THERE}),
        ("gauge-box:/home/zoe/work/ferry", {SAME_PATH_THERE}),
        ("ssh-remote+gauge-box:/srv/ferry-box", {REMOTE}),
        ("ferry", {FERRY, OTHER_FERRY, SAME_PATH_THERE}),
        ("gauge-box", {REMOTE, SAME_PATH_THERE}),
        ("ssh-remote+gauge-box", {REMOTE, SAME_PATH_THERE}),
        ("play/ferry", {OTHER_FERRY}),
        ("work/web", {WINDOWS}),
        ("c:/users/zoe/work/web", {WINDOWS}),
        ("web", {WINDOWS, WEB}),
        ("erry", set()),
        ("", set()),
        ("/", set()),
        ("%", set()),
        ("fer*", {FERRY, OTHER_FERRY, REMOTE, SAME_PATH_THERE}),
        ("/home/zoe/*", {FERRY, OTHER_FERRY, SAME_PATH_THERE, WEB}),
        ("zoe/*/web", {WINDOWS}),
        ("gauge-box:/home/*", {SAME_PATH_THERE}),
        ("C:\\Users\\*", {WINDOWS}),
        ("*", set(ALL)),
    ],
)
def test_a_workspace_is_found_by_path_name_host_and_wildcard(
    db: sqlite3.Connection, name: str, workspaces: set[Workspace]
) -> None:
    assert set(workspace_hashes(db, name)) == {workspace.hash for workspace in workspaces}


def test_an_ambiguous_end_of_a_path_raises_an_error_with_the_candidates(db: sqlite3.Connection) -> None:
    with pytest.raises(WorkspaceNotFoundError, match="gauge-box:/home/zoe/work/ferry") as raised:
        workspace_hashes(db, "work/ferry")
    assert raised.value.workspace == "work/ferry"
    assert "  /home/zoe/work/ferry" in str(raised.value)
    assert set(workspace_hashes(db, "work/ferry", is_strict=False)) == {FERRY.hash, SAME_PATH_THERE.hash}


def test_matching_ids_returns_the_matching_ids_and_all_others(db: sqlite3.Connection) -> None:
    gone, others = matching_ids(db, Filter(is_gone=True))
    assert gone == set(range(len(ALL)))
    assert others == set(range(len(ALL), 2 * len(ALL)))
    assert matching_ids(db, Filter(is_gone=True, workspace="play/ferry"))[0] == {1}


@pytest.mark.parametrize(
    ("pattern", "branches"),
    [
        ("main", {"main"}),
        ("MAIN", {"main"}),
        ("fix/*", {"fix/Ünder", "fix/[1]"}),
        ("fix/ÜNDER", {"fix/Ünder"}),
        ("*[1]", {"fix/[1]"}),
        ("m??n*", set()),
        ("fix", set()),
    ],
)
def test_a_branch_is_found_by_its_name_and_by_a_wildcard(
    db: sqlite3.Connection, pattern: str, branches: set[str]
) -> None:
    every = ["main", "fix/Ünder", "fix/[1]"]
    for number, branch in enumerate(every):
        db.execute("update conversations set git_branch = ? where number = ?", [branch, number])
    assert {every[number] for number in matching_ids(db, Filter(branch=pattern))[0]} == branches


@pytest.mark.parametrize(
    ("pattern", "models"),
    [
        ("opus", {0}),
        ("OPUS-5", {0}),
        ("claude*5", {0}),
        ("gpt_5", {1}),
        ("gpt*", {1}),
        ("op_s", set()),
        ("5*", set()),
    ],
)
def test_a_model_is_found_by_a_part_of_its_name(
    db: sqlite3.Connection, pattern: str, models: set[int]
) -> None:
    for number, model in enumerate(["claude-opus-5", "gpt_5"]):
        db.execute("update conversations set models = json_array(?) where number = ?", [model, number])
    assert matching_ids(db, Filter(model=pattern))[0] == models


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("C:\\Users\\Zoe\\Ferry", "c:\\users\\zoe\\ferry"),
        ("\\\\Server\\Share\\Ferry", "\\\\server\\share\\ferry"),
    ],
)
def test_windows_paths_that_differ_only_in_case_are_one_workspace(
    tmp_path: Path, one: str, other: str
) -> None:
    root = tmp_path / "claude"
    Transcript(seed=1, cwd=one).user("a").assistant("b").write(root)
    Transcript(seed=2, cwd=other).user("c").assistant("d").write(root)
    with History(roots=[NamedRoot("claude-code", root)], home=tmp_path / "home") as history:
        history.sync()
        (workspace,) = history.list_workspaces()
        assert workspace.session_count == 2
        assert {summary.workspace_path for summary in history.all_sessions()} == {one, other}
        for path in (one, other):
            assert history.list_sessions(Filter(workspace=path)).pagination.total == 2
        (row,) = history.statistics.report(by="workspace").rows
        assert (row.key, row.sessions) == (workspace.path, 2)
        assert len(history.session_facets().workspaces) == 1


def test_paths_of_other_systems_that_differ_in_case_are_two_workspaces() -> None:
    assert workspace_hash("/home/zoe/Ferry") != workspace_hash("/home/zoe/ferry")
    assert workspace_hash("/home/zoe/Ferry", authority="wsl+Ubuntu") != workspace_hash(
        "/home/zoe/ferry", authority="wsl+Ubuntu"
    )


def test_a_migrated_archive_gets_the_new_hashes_at_the_next_sync(tmp_path: Path) -> None:
    root = tmp_path / "claude"
    Transcript(seed=1, cwd="C:\\Ferry").user("a").assistant("b").write(root)
    with History(roots=[NamedRoot("claude-code", root)], home=tmp_path / "home") as history:
        history.sync()
        migration = (MIGRATIONS / "0012_windows_paths.sql").read_text(encoding="utf-8")
    with closing(connect(history.archive_path)) as db:
        db.execute("update conversations set workspace_hash = 'of the former spelling'")
        db.executescript(migration)
    with history:
        history.sync()
    with closing(connect(history.archive_path)) as db:
        row = db.execute("select workspace_hash from conversations").fetchone()
    assert row == (workspace_hash("c:\\ferry"),)
