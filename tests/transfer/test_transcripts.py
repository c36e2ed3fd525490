"""Transcripts of Cursor are moved with their sessions."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backscroll import History
from backscroll.config import NamedRoot
from backscroll.testing import cursor, cursor_cli
from backscroll.testing.cursor_cli.transcripts import Rule, project_slug, write_transcript

ONE = "10000000-0000-4000-8000-000000000001"
CHILD = "20000000-0000-4000-8000-000000000002"
MESSAGES = [cursor.user("Rename it"), cursor.assistant("Done.")]


class Machine:
    def __init__(self, folder: Path) -> None:
        self.old, self.new = folder / "my.ferry", folder / "my.boat"
        self.ide, self.agent = folder / "Cursor", folder / ".cursor"
        for path in (self.old, self.new, self.ide, self.agent):
            path.mkdir()
        roots = [NamedRoot("cursor", self.ide), NamedRoot("cursor-cli", self.agent)]
        self.history = History(roots=roots, home=folder / "home")

    def transcripts(self) -> set[str]:
        paths = (self.agent / "projects").rglob("*.jsonl")
        return {str(path.relative_to(self.agent / "projects")) for path in paths}

    def write_transcripts(self, rule: Rule = "separators") -> None:
        write_transcript(self.agent, MESSAGES, id=ONE, cwd=str(self.old), rule=rule)
        write_transcript(self.agent, MESSAGES, id=CHILD, parent=ONE, cwd=str(self.old), rule=rule)
        write_transcript(self.agent, MESSAGES[:1], id=ONE, project="empty-window")
        self.history.sync()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    with machine.history:
        yield machine


@pytest.mark.parametrize("rule", ["separators", "alphanumeric"])
@pytest.mark.parametrize("source", ["cursor", "cursor-cli"])
def test_transcripts_move_with_the_session_and_back(machine: Machine, source: str, rule: Rule) -> None:
    if source == "cursor":
        home = cursor.Home(machine.ide, generation=5)
        home.composer(MESSAGES, workspace=cursor.local_folder(str(machine.old)), id=ONE)
        home.write()
    else:
        cursor_cli.Home(machine.agent).chat(MESSAGES, cwd=str(machine.old), id=ONE)
    machine.write_transcripts(rule)
    before = machine.transcripts()
    assert machine.history.find(ONE).source == source
    result = machine.history.migrate_session(ONE, machine.new, mode="move")
    assert result.errors == ()
    slug = project_slug(str(machine.new), rule=rule)
    assert machine.transcripts() == {
        f"{slug}/agent-transcripts/{ONE}/{ONE}.jsonl",
        f"{slug}/agent-transcripts/{ONE}/subagents/{CHILD}.jsonl",
        f"empty-window/agent-transcripts/{ONE}/{ONE}.jsonl",
    }
    assert machine.history.find(ONE).workspace_path == str(machine.new)
    machine.history.undo_change()
    assert machine.transcripts() == before


def test_a_copy_has_no_transcript(machine: Machine) -> None:
    cursor_cli.Home(machine.agent).chat(MESSAGES, cwd=str(machine.old), id=ONE)
    machine.write_transcripts()
    before = machine.transcripts()
    assert machine.history.migrate_session(ONE, machine.new).errors == ()
    assert machine.transcripts() == before


@pytest.mark.parametrize("mode", ["copy", "move"])
def test_a_session_with_only_a_transcript_is_left_with_the_next_step(machine: Machine, mode: str) -> None:
    machine.write_transcripts()
    before = machine.transcripts()
    result = machine.history.migrate_session(ONE, machine.new, mode=mode)  # type: ignore[arg-type]
    assert [one.code for one in result.errors] == ["transcript-only"]
    assert f"backscroll handoff {ONE}" in result.errors[0].message
    machine.old.rmdir()
    assert machine.history.transfers.moved_workspaces().workspaces == ()  # nothing to move
    assert machine.transcripts() == before
