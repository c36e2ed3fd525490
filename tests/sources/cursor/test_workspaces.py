"""Folder of a session, and the evidence for it."""

import json
from pathlib import Path
from typing import Any

import pytest

from backscroll.model.workspace import Workspace
from backscroll.sources.cursor.uri import Address, parse_uri
from backscroll.testing import cursor
from tests.sources.cursor.reading import read_session, read_sessions, write_and_read

MESSAGES = (cursor.user("Totals are off"), cursor.assistant("Rounding now happens once."))


@pytest.fixture
def home(tmp_path: Path) -> cursor.Home:
    return cursor.Home(tmp_path / "Cursor")


def find_workspace(home: cursor.Home, **options: Any) -> Workspace | None:
    return write_and_read(home, *MESSAGES, **options).closing.workspace


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("file:///home/dev/x", Address("/home/dev/x")),
        ("file:///home/dev/a%20b", Address("/home/dev/a b")),
        ("file:///c%3A/Users/dev/x", Address("c:/Users/dev/x")),
        ("file:///C:/Users/dev/x", Address("c:/Users/dev/x")),
        ("file://wsl.localhost/Ubuntu/home/dev", Address("/home/dev", "wsl+Ubuntu")),
        ("file://wsl%24/Ubuntu/home/dev", Address("/home/dev", "wsl+Ubuntu")),
        ("file://server/share/x", Address("//server/share/x")),
        ("vscode-remote://wsl+Ubuntu/home/dev", Address("/home/dev", "wsl+Ubuntu")),
        ("vscode-remote://wsl%2BUbuntu/home/dev", Address("/home/dev", "wsl+Ubuntu")),
        ("vscode-remote://ssh-remote+host/srv", Address("/srv", "ssh-remote+host")),
        (
            "vscode-remote://ssh-remote+" + json.dumps({"hostName": "host"}).encode().hex() + "/srv",
            Address("/srv", "ssh-remote+host"),
        ),
        ("vscode-remote://dev-container+7b7d/workspaces/x", Address("/workspaces/x", "dev-container+7b7d")),
        ("vscode-remote://tunnel+box/w", Address("/w", "tunnel+box")),
        ({"scheme": "file", "fsPath": "c:\\Users\\dev\\x", "path": "/c:/x"}, Address("c:\\Users\\dev\\x")),
        ({"scheme": "file", "path": "/home/dev/x"}, Address("/home/dev/x")),
        ({"scheme": "file", "authority": "wsl.localhost", "path": "/U/h"}, Address("/h", "wsl+U")),
        (
            {"scheme": "vscode-remote", "authority": "ssh-remote+h", "path": "/x"},
            Address("/x", "ssh-remote+h"),
        ),
        ({"$mid": 1, "external": "file:///w"}, Address("/w")),
        ("untitled:Untitled-1", None),
        ({}, None),
        (None, None),
        (7, None),
    ],
)
def test_uris_of_every_form_are_parsed(uri: Any, expected: Address | None) -> None:
    assert parse_uri(uri) == expected


@pytest.mark.parametrize(
    ("place", "path", "authority"),
    [
        (cursor.local_folder("/home/dev/docs site"), "/home/dev/docs site", ""),
        (cursor.windows_folder("C:\\Users\\dev\\shop"), "c:/Users/dev/shop", ""),
        (cursor.multi_root("/home/dev/all.code-workspace"), "/home/dev/all.code-workspace", ""),
        (cursor.ssh_folder("build.example", "/srv/shop"), "/srv/shop", "ssh-remote+build.example"),
        (cursor.wsl_folder("Ubuntu", "/home/dev/shop"), "/home/dev/shop", "wsl+Ubuntu"),
        (cursor.container_folder("7b7d", "/workspaces/shop"), "/workspaces/shop", "dev-container+7b7d"),
    ],
)
@pytest.mark.parametrize("generation", [2, 3, 5])
def test_a_workspace_of_every_kind_is_found(
    tmp_path: Path, place: cursor.Workspace, path: str, authority: str, generation: int
) -> None:
    home = cursor.Home(tmp_path / "Cursor", generation=generation)
    found = find_workspace(home, workspace=place)
    assert found is not None
    assert (found.path.replace("\\", "/"), found.authority) == (path, authority)
    assert place.id in found.storage_ids


def test_a_host_is_part_of_the_workspace(tmp_path: Path, home: cursor.Home) -> None:
    one = home.composer(MESSAGES, workspace=cursor.ssh_folder("a", "/srv/shop"))
    two = home.composer(MESSAGES, workspace=cursor.ssh_folder("b", "/srv/shop"))
    found = read_sessions(home.write())
    hashes = [workspace.hash for id in (one.id, two.id) if (workspace := found[id].closing.workspace)]
    assert len(set(hashes)) == 2


def test_a_multi_root_workspace_has_the_folders_of_its_file(tmp_path: Path, home: cursor.Home) -> None:
    file = tmp_path / "all.code-workspace"
    cursor.write_code_workspace(file, ["shop", "/srv/docs"])
    found = find_workspace(home, workspace=cursor.multi_root(str(file)))
    assert found and found.folders == (str(tmp_path / "shop"), "/srv/docs")


def test_sessions_of_a_recreated_folder_share_a_workspace(home: cursor.Home) -> None:
    old = home.composer(MESSAGES, workspace=cursor.local_folder("/home/dev/shop", inode=1))
    new = home.composer(MESSAGES, workspace=cursor.local_folder("/home/dev/shop", inode=2))
    found = read_sessions(home.write())
    first, second = found[old.id].closing.workspace, found[new.id].closing.workspace
    assert first and second
    assert first.hash == second.hash
    assert set(first.storage_ids) == set(second.storage_ids) == {old.workspace.id, new.workspace.id}


def test_the_folder_is_found_by_storage_id(home: cursor.Home) -> None:
    identifier = {"workspaceIdentifier": {"id": cursor.SHOP.id}}
    found = find_workspace(home, workspace=cursor.SHOP, head=identifier, data=identifier)
    assert found and (found.path, found.evidence) == ("/home/dev/shop", "workspaceIdentifier.id")


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("/home/dev/shop", "/home/dev/shop"),
        ("file:///home/dev/docs%20site", "/home/dev/docs site"),
        ('"/home/dev/shop"', "/home/dev/shop"),
        (b"C:\\Users\\dev\\shop", "c:\\Users\\dev\\shop"),
        ('{"folder": "file:///home/dev/shop"}', "/home/dev/shop"),
        ('{"workspace": "/home/dev/all.code-workspace"}', "/home/dev/all.code-workspace"),
        ('{"configuration": "file:///home/dev/all.code-workspace"}', "/home/dev/all.code-workspace"),
        ('{"uri": {"scheme": "file", "path": "/home/dev/shop"}}', "/home/dev/shop"),
        ('{"scheme": "vscode-remote", "authority": "wsl+U", "path": "/home/dev/shop"}', "/home/dev/shop"),
        ('{"path": "/home/dev/shop"}', "/home/dev/shop"),
        ('{"path": "shop"}', None),
        ('{"id": 7}', None),
        ("no path", None),
        (b"\xff", None),
        (None, None),
    ],
)
def test_the_folder_is_found_in_the_workspace_database_without_a_file(
    home: cursor.Home, value: str | bytes | None, path: str | None
) -> None:
    place = cursor.Workspace("5a" * 16)  # has no workspace.json
    home.put_item("workspace", value, workspace=place)
    identifier = {"workspaceIdentifier": {"id": place.id}, "trackedGitRepos": []}
    found = find_workspace(home, workspace=place, head=identifier, data=identifier, has_graph=False)
    assert (found and found.path) == path


def test_a_workspace_file_wins_over_the_workspace_database(home: cursor.Home) -> None:
    home.put_item("workspace", "/home/dev/other", workspace=cursor.SHOP)
    identifier = {"workspaceIdentifier": {"id": cursor.SHOP.id}}
    found = find_workspace(home, workspace=cursor.SHOP, head=identifier, data=identifier)
    assert found and found.path == "/home/dev/shop"


NO_WORKSPACE: dict[str, Any] = {"workspaceIdentifier": {}, "trackedGitRepos": []}


def test_the_folder_is_found_by_the_pane_that_shows_the_session(home: cursor.Home) -> None:
    id = "5e55e000-0000-4000-8000-000000000001"
    shown = json.dumps({f"workbench.panel.aichat.view.{id}": {"isHidden": False}})
    home.put_item("workbench.panel.composerChatViewPane.5a5a", shown, workspace=cursor.DOCS)
    found = find_workspace(
        home, id=id, workspace=cursor.Workspace("x"), is_listed=False, data=NO_WORKSPACE, has_graph=False
    )
    assert found and (found.path, found.evidence) == (cursor.DOCS.path, "workspace list")


@pytest.mark.parametrize(
    ("data", "path", "evidence"),
    [
        ({"agentLocation": {"environment": {"uri": "file:///w/a"}}}, "/w/a", "agentLocation"),
        ({"gitWorktree": {"worktreePath": "/w/b"}}, "/w/b", "gitWorktree"),
        ({"trackedGitRepos": [{"repoPath": "/w/c", "branches": []}]}, "/w/c", "trackedGitRepos"),
    ],
)
def test_the_folder_is_found_by_the_checkout(home: cursor.Home, data: Any, path: str, evidence: str) -> None:
    place = cursor.Workspace("gone")
    found = find_workspace(
        home, workspace=place, head=NO_WORKSPACE, data=NO_WORKSPACE | data, has_graph=False
    )
    assert found and (found.path, found.evidence) == (path, evidence)


def test_a_worktree_belongs_to_its_repository(home: cursor.Home) -> None:
    tree = "/home/dev/.cursor/worktrees/shop/ab12"
    repos = {"trackedGitRepos": [{"repoPath": tree}, {"repoPath": "/home/dev/shop"}]}
    found = find_workspace(home, workspace=cursor.local_folder(tree), head=repos, data=repos)
    assert found and (found.path, found.evidence) == ("/home/dev/shop", "worktree of")
    assert found.folders == (tree,)


def test_git_names_the_repository_of_a_worktree(tmp_path: Path, home: cursor.Home) -> None:
    tree = tmp_path / ".cursor/worktrees/shop/ab12"
    tree.mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {tmp_path}/shop/.git/worktrees/ab12\n")
    nothing = {"trackedGitRepos": []}
    found = find_workspace(home, workspace=cursor.local_folder(str(tree)), head=nothing, data=nothing)
    assert found and found.path == str(tmp_path / "shop")


def test_a_subagent_has_the_folder_of_its_parent(home: cursor.Home) -> None:
    parent = home.composer(MESSAGES, workspace=cursor.DOCS)
    info = {"subagentInfo": {"parentComposerId": parent.id}}
    child = home.composer(
        MESSAGES,
        workspace=cursor.Workspace("gone"),
        head=NO_WORKSPACE | info,
        data=NO_WORKSPACE | info,
        has_graph=False,
    )
    found = read_session(home.write(), child.id).closing.workspace
    assert found and (found.path, found.evidence) == (cursor.DOCS.path, "parent")


def test_the_folder_is_found_in_the_agent_record(home: cursor.Home) -> None:
    found = find_workspace(home, workspace=cursor.empty_window(), head=NO_WORKSPACE, data=NO_WORKSPACE)
    assert found and found.evidence == "conversationState"


def test_the_folder_is_found_by_the_layout_sent_with_a_request(home: cursor.Home) -> None:
    id = "5e55e000-0000-4000-8000-000000000002"
    layout = json.dumps({"rootPath": "/w/layout"})
    home.put(f"messageRequestContext:{id}:b1", json.dumps({"projectLayouts": [layout]}))
    found = find_workspace(
        home, id=id, workspace=cursor.Workspace("x"), head=NO_WORKSPACE, data=NO_WORKSPACE, has_graph=False
    )
    assert found and (found.path, found.evidence) == ("/w/layout", "messageRequestContext")


def test_the_folder_is_the_common_folder_of_attached_files(home: cursor.Home) -> None:
    files = ["/home/dev/shop/src/cart.py", "/home/dev/shop/tests/test_cart.py"]
    session = write_and_read(
        home,
        cursor.user("Look", files=files),
        workspace=cursor.Workspace("x"),
        head=NO_WORKSPACE,
        data=NO_WORKSPACE,
        has_graph=False,
    )
    found = session.closing.workspace
    assert found and (found.path, found.evidence) == ("/home/dev/shop", "common folder of its files")


def test_the_folder_is_found_by_the_project_folder_of_the_transcript(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / ".config/Cursor")
    home.add_workspace(cursor.DOCS)
    composer = home.composer(
        MESSAGES, workspace=cursor.Workspace("x"), head=NO_WORKSPACE, data=NO_WORKSPACE, has_graph=False
    )
    folder = tmp_path / ".cursor/projects/home-dev-docs-site/agent-transcripts" / composer.id
    folder.mkdir(parents=True)
    home.composer(MESSAGES, workspace=cursor.DOCS)
    found = read_session(home.write(), composer.id).closing.workspace
    assert found and (found.path, found.evidence) == (cursor.DOCS.path, "transcript")


def test_a_session_without_evidence_has_no_folder(home: cursor.Home) -> None:
    place = cursor.empty_window()
    assert (
        find_workspace(home, workspace=place, head=NO_WORKSPACE, data=NO_WORKSPACE, has_graph=False) is None
    )


WITHOUT_WORKSPACE: dict[str, Any] = {
    "workspace": cursor.Workspace("x"),
    "head": NO_WORKSPACE,
    "data": NO_WORKSPACE,
    "has_graph": False,
}


@pytest.mark.parametrize("link", ["https://example.org/a/b", "http://example.org", "mailto:a@b", "data:x"])
def test_a_web_link_is_not_a_file(link: str) -> None:
    assert parse_uri(link) is None


def test_the_folder_is_found_by_the_workspace_uri_of_a_message(home: cursor.Home) -> None:
    message = cursor.user("Totals are off", workspaceUris=["file:///home/dev/shop"])
    found = write_and_read(home, message, **WITHOUT_WORKSPACE).closing.workspace
    assert found is not None
    assert (found.path, found.evidence) == ("/home/dev/shop", "common folder of its files")


@pytest.mark.parametrize(
    ("names", "path"),
    [
        (("/home/dev/shop/a.py", "/home/dev/shop/b/c.py"), "/home/dev/shop"),
        (("a.py", "b/c.py"), None),
    ],
)
def test_only_absolute_names_of_attached_files_are_evidence(
    home: cursor.Home, names: tuple[str, str], path: str | None
) -> None:
    chosen = [{"fileName": name, "content": "x"} for name in names]
    message = cursor.user("Totals are off", context={"fileSelections": chosen})
    found = write_and_read(home, message, **WITHOUT_WORKSPACE).closing.workspace
    assert (found and found.path) == path


def test_the_folder_is_the_common_folder_of_shown_code(home: cursor.Home) -> None:
    blocks = [{"uri": f"file:///home/dev/shop/{name}", "content": "x"} for name in ("a.py", "b/c.py")]
    found = write_and_read(
        home, cursor.assistant("See.", codeBlocks=blocks), **WITHOUT_WORKSPACE
    ).closing.workspace
    assert found is not None
    assert found.path == "/home/dev/shop"
