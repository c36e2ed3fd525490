"""A new source needs one file and one line in the registry."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from starlette.testclient import TestClient

from backscroll.cli.app import app
from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model import store
from backscroll.sources import registry
from backscroll.web import templating
from backscroll.web.app import create_app
from tests.sources.toy_source import Toy

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-source.md"
CODE = Path(__file__).with_name("toy_source.py")
LINES = [
    {
        "role": "user",
        "text": "Why is the timetable off by one hour?",
        "at": "2026-10-03T07:00:00Z",
        "folder": "/home/ada/ferry",
    },
    {"role": "assistant", "text": "The clocks change on Sunday.", "at": "2026-10-03T07:00:09Z"},
]


class Shell:
    """Runs commands on a root of the toy source."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / ".toy"
        self.root.mkdir()
        self.home = folder / "archive"
        self.options = ("--home", str(self.home), "--root", f"toy={self.root}")

    def write(self, name: str, *lines: dict[str, str], end: str = "") -> Path:
        path = self.root / f"{name}.jsonl"
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + end, encoding="utf-8")
        return path

    def run(self, *arguments: str, code: int = 0) -> Result:
        result = CliRunner().invoke(app, [*self.options, *arguments], catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result

    def history(self) -> History:
        return History(home=self.home, roots=[NamedRoot("toy", self.root)])

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.run(*arguments, "--json", code=code).stdout)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setitem(registry.SOURCES, Toy.name, Toy)
    monkeypatch.setattr(store, "STORES", dict(store.STORES))
    monkeypatch.setattr(store, "UNIT_KINDS", dict(store.UNIT_KINDS))
    registry.register(Toy)
    shell = Shell(tmp_path)
    shell.write("ferry", *LINES)
    return shell


def test_a_sync_reads_its_sessions_once(shell: Shell) -> None:
    assert shell.json("sync")["new"] == 1
    assert shell.json("sync")["new"] == 0


def test_its_sessions_are_listed(shell: Shell) -> None:
    (summary,) = shell.json("list")["data"]
    assert (summary["ref"], summary["source"], summary["platform"]) == ("toy:ferry", "toy", "toy")
    assert (summary["title"], summary["message_count"]) == ("Why is the timetable off by one hour?", 2)
    assert shell.json("list", "--source", "toy")["pagination"]["total"] == 1


def test_its_sessions_are_shown(shell: Shell) -> None:
    session = shell.json("show", "toy:ferry")
    assert [message["content"] for message in session["messages"]] == [line["text"] for line in LINES]
    assert "The clocks change on Sunday." in shell.run("show", "ferry").output


def test_its_messages_are_found(shell: Shell) -> None:
    (match,) = shell.json("search", "clocks")["data"]
    assert (match["session_ref"], match["message_index"]) == ("toy:ferry", 1)


def test_its_sessions_are_exported(shell: Shell) -> None:
    for format_ in ("md", "html", "txt", "json"):
        assert "The clocks change on Sunday." in shell.run("export", "ferry", "--format", format_).output


def test_its_sessions_are_counted(shell: Shell) -> None:
    shell.run("sync")
    assert shell.json("stats")["total"]["sessions"] == 1


@pytest.fixture
def client(shell: Shell) -> Iterator[TestClient]:
    with TestClient(create_app(shell.history, "t" * 43), base_url="http://127.0.0.1:7433") as client:
        yield client


def test_its_sessions_have_a_web_page(shell: Shell, client: TestClient) -> None:
    shell.run("sync")
    page = client.get("/sessions/toy:ferry")
    assert page.status_code == 200
    assert "The clocks change on Sunday." in page.text
    assert 'class="source source-toy"' in page.text


def test_its_name_has_its_color_on_web_pages(
    shell: Shell, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(templating, "_static_content", templating._static_content.__wrapped__)
    assert ".source-toy { color: light-dark(#7a4800, #e6b673); }" in client.get("/static/x/app.css").text


def test_doctor_finds_its_problems(shell: Shell) -> None:
    assert shell.json("doctor")["is_understood"]
    shell.write("truncated", *LINES, end='{"role": "us')
    audit = shell.json("doctor", code=3)
    assert [(problem["place"], problem["code"]) for problem in audit["problems"]] == [
        ("line 3", "truncated-line")
    ]


def test_a_session_stays_in_the_archive_when_the_tool_deletes_it(shell: Shell) -> None:
    shell.run("sync")
    (shell.root / "ferry.jsonl").unlink()
    assert shell.json("list")["data"][0]["is_gone"]
    assert "does not resume" in shell.run("resume", "ferry", "--print", code=1).output


def test_a_deleted_session_is_restored_byte_for_byte_with_its_side_files(shell: Shell) -> None:
    session, picture = shell.root / "ferry.jsonl", shell.root / "ferry-pictures" / "pier.png"
    picture.parent.mkdir()
    picture.write_bytes(b"\x89PNG")
    before = session.read_bytes()
    shell.run("sync")
    session.unlink()
    shutil.rmtree(picture.parent)
    shell.run("restore-session", "ferry", "--yes")
    assert (session.read_bytes(), picture.read_bytes()) == (before, b"\x89PNG")
    assert not shell.json("list")["data"][0]["is_gone"]


def test_a_backup_restores_its_sessions_into_an_empty_home_byte_for_byte(
    shell: Shell, tmp_path: Path
) -> None:
    shell.write("pier", LINES[0], end='{"role": "us')
    before = {path.name: path.read_bytes() for path in shell.root.iterdir()}
    shell.run("backup", "create", "-o", str(tmp_path / "history.zip"))
    shutil.rmtree(shell.root)
    shutil.rmtree(shell.home)
    shell.run("backup", "restore", str(tmp_path / "history.zip"), "--yes")
    assert {path.name: path.read_bytes() for path in shell.root.iterdir()} == before


def test_a_backup_restored_with_a_map_has_the_new_folder(shell: Shell, tmp_path: Path) -> None:
    shell.run("backup", "create", "-o", str(tmp_path / "history.zip"))
    (shell.root / "ferry.jsonl").unlink()
    maps = ("--map", "/home/ada=/home/robert")
    shell.run("backup", "restore", str(tmp_path / "history.zip"), *maps, "--yes")
    assert shell.json("show", "ferry")["workspace_path"] == "/home/robert/ferry"


def test_a_moved_session_has_the_new_folder_and_is_otherwise_unchanged(shell: Shell, tmp_path: Path) -> None:
    target, session = tmp_path / "boat", shell.root / "ferry.jsonl"
    target.mkdir()
    before = session.read_bytes()
    shell.run("migrate", "ferry", "--to", str(target), "--mode", "move", "--yes")
    assert session.read_bytes() == before.replace(b"/home/ada/ferry", str(target).encode())
    assert shell.json("show", "ferry")["workspace_path"] == str(target)
    shell.run("undo", "--yes")
    assert session.read_bytes() == before


def test_a_copied_session_has_a_new_id_and_the_new_folder(shell: Shell, tmp_path: Path) -> None:
    target, session = tmp_path / "boat", shell.root / "ferry.jsonl"
    target.mkdir()
    before = session.read_bytes()
    shell.run("migrate", "ferry", "--to", str(target), "--yes")
    assert session.read_bytes() == before
    folders = {one["id"]: one["workspace_path"] for one in shell.json("list")["data"]}
    (copy,) = folders.keys() - {"ferry"}
    assert folders == {"ferry": "/home/ada/ferry", copy: str(target)}


def test_a_session_cannot_be_moved_if_its_messages_are_to_keep_their_folder(
    shell: Shell, tmp_path: Path
) -> None:
    options = ("--to", str(tmp_path), "--mode", "move", "--keep-cwd", "--yes")
    assert "only in its messages" in shell.run("migrate", "ferry", *options, code=1).output


def test_a_source_without_declared_fields_refuses_to_move(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Toy, "json_fields", None)
    output = shell.run("migrate", "ferry", "--to", str(tmp_path), "--yes", code=1).output
    assert "can be restored, but not" in output


def test_the_documentation_shows_the_code_that_is_tested() -> None:
    assert f"```python\n{CODE.read_text(encoding='utf-8')}```\n" in PAGE.read_text(encoding="utf-8")
