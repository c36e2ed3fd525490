"""The tools that find the sessions behind commits and lines of code."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from backscroll.history.history import History
from backscroll.mcp.tools.results import NOTICE
from tests.demo_archive import DemoArchive
from tests.mcp_server.server_client import McpClient


@pytest.fixture
def repository(demo_archive: DemoArchive) -> Path:
    return Path(demo_archive.written.folder) / "projects" / "saltern"


def git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_commit_has_the_sessions_of_the_library(
    structured_client: McpClient, history: History, repository: Path
) -> None:
    for sha in git(repository, "log", "--format=%H").split():
        document = structured_client.document(
            "sessions_for_commit", repository=str(repository), revision=sha[:10]
        )
        commit = history.get_commit(sha, repository)
        assert document["sha"] == sha
        assert [each["ref"] for each in document["sessions"]] == [
            each.session_ref for each in commit.sessions
        ]
        turns = [turn for each in document["sessions"] for turn in each.get("turns", [])]
        assert [turn["position"] for turn in turns] == [turn.first for turn in commit.turns]


def test_the_text_names_session_evidence_turn_and_prompt(mcp_client: McpClient, repository: Path) -> None:
    sha = git(repository, "log", "--format=%h", "--grep=Backfill", "-1")
    text = mcp_client.text("sessions_for_commit", repository=str(repository), revision=sha)
    assert text.startswith(NOTICE)
    assert "claude-code:721c4c95 · Backfill 2019 to 2025 · saltern" in text
    assert "content: 21 of 21 added lines" in text
    assert "   [0] to [5] user: Write a script that imports the yearly archives" in text
    assert text.endswith("Read a turn with get_session, using the ref and the position.")


def test_lines_have_commit_session_turn_and_prompt(mcp_client: McpClient, repository: Path) -> None:
    text = mcp_client.text(
        "sessions_for_code", repository=str(repository), file="saltern/backfill.py", lines="10-20"
    )
    sha = git(repository, "log", "--format=%h", "--grep=Backfill", "-1", "--abbrev=9")
    assert f"10-15: {sha} 2026-09-24 Backfill the yearly archives\n" in text
    assert "16-20: " in text
    assert "[6] to [11] user: Stop. It eats all memory on 2022" in text


def test_the_ranges_cover_every_line_once_and_agree_with_the_library(
    structured_client: McpClient, history: History, repository: Path
) -> None:
    for name in git(repository, "ls-files").split():
        document = structured_client.document("sessions_for_code", file=str(repository / name))
        expected = [(one.line, one.sha, one.session_ref) for one in history.blame_file(repository / name)]
        found = [
            (line, item.get("sha"), item.get("ref"))
            for item in document["data"]
            for line in range(item["first_line"], item["last_line"] + 1)
        ]
        assert found == expected


def test_a_prompt_is_not_repeated(mcp_client: McpClient, repository: Path) -> None:
    text = mcp_client.text("sessions_for_code", file=str(repository / "saltern" / "backfill.py"))
    assert text.count("Write a script that imports the yearly archives") == 1
    assert "claude-code:721c4c95 [0], as above" in text


def test_a_long_file_is_read_in_parts(
    structured_client: McpClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "--quiet")
    for key, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
        git(tmp_path, "config", key, value)
    lines: list[str] = []
    for number in range(32):
        lines.append(f"line {number}")
        (tmp_path / "long.txt").write_text("\n".join(lines) + "\n")
        git(tmp_path, "add", "long.txt")
        git(tmp_path, "commit", "--quiet", "-m", f"Add line {number}")
    first = structured_client.document("sessions_for_code", file=str(tmp_path / "long.txt"))
    assert [item["first_line"] for item in first["data"]] == [*range(1, 31)]
    assert first["hints"][-1] == "More lines: lines=31-32"
    assert "No session was found for these lines" in first["hints"][0]
    rest = structured_client.document("sessions_for_code", file=str(tmp_path / "long.txt"), lines="31-32")
    assert [item["first_line"] for item in rest["data"]] == [31, 32]


def test_a_commit_without_a_session_says_so(mcp_client: McpClient, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    git(tmp_path, *identity, "commit", "--quiet", "--allow-empty", "-m", "Start")
    text = mcp_client.text("sessions_for_commit", repository=str(tmp_path))
    assert "No session was found for this commit" in text


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "message"),
    [
        ("sessions_for_commit", {"revision": "0" * 40}, "commit_not_found", "No commit"),
        ("sessions_for_commit", {"repository": "/"}, "repository", "is not in a git repository"),
        ("sessions_for_commit", {"repository": "saltern"}, "invalid_arguments", "not an absolute path"),
        ("sessions_for_commit", {"sha": "HEAD"}, "invalid_arguments", "Did you mean 'revision'?"),
        ("sessions_for_code", {"file": "no/such.py"}, "repository", "is not a file of"),
        ("sessions_for_code", {"lines": "900"}, "invalid_arguments", "has 7 lines"),
        ("sessions_for_code", {"lines": "3-1"}, "invalid_arguments", ""),
        ("sessions_for_code", {"lines": "all"}, "invalid_arguments", "Examples: 40, 40-60"),
        ("sessions_for_code", {"lines": 3}, "invalid_arguments", '"lines":"3"'),
    ],
)
def test_an_error_has_a_next_step(
    structured_client: McpClient,
    repository: Path,
    tool: str,
    arguments: dict[str, Any],
    kind: str,
    message: str,
) -> None:
    valid = {"repository": str(repository)} | ({"file": "README.md"} if tool == "sessions_for_code" else {})
    error = structured_client.error(tool, **(valid | arguments))
    assert error["type"] == kind
    assert message in error["message"]
    assert error["next"]


def test_a_relative_file_needs_a_repository(structured_client: McpClient) -> None:
    error = structured_client.error("sessions_for_code", file="README.md")
    assert error["message"] == "file: 'README.md' is not an absolute path. Pass one, or pass repository."
