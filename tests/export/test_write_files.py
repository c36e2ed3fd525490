"""Export files: one per session, with a stable name, and without overwriting."""

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from backscroll.config import NamedRoot
from backscroll.errors import DestinationError
from backscroll.export import Exports, write_files
from backscroll.history.history import History
from backscroll.render.json import encode_json, session_document
from backscroll.render.session_header import file_names
from backscroll.render.turns import MessageItem, SubagentStart
from backscroll.testing.claude_code import Transcript
from tests.export.sample_sessions import write_plain
from tests.render.sessions import SUMMARY


def test_a_file_name_contains_the_day_the_title_and_the_id() -> None:
    assert file_names([SUMMARY], "md") == ["2026-10-03-why-is-the-timetable-off-by-one-hour-5e551011.md"]


@pytest.mark.parametrize(
    ("title", "name"),
    [
        (None, "2026-10-03-5e551011.md"),
        ("../../etc/passwd\x00", "2026-10-03-etc-passwd-5e551011.md"),
        ("日本語のルビとフォント", "2026-10-03-日本語のルビとフォント-5e551011.md"),
        ("word " * 100, f"2026-10-03-{'-'.join(['word'] * 12)}-5e551011.md"),
        ("x" * 500, f"2026-10-03-{'x' * 60}-5e551011.md"),
    ],
)
def test_any_title_gives_a_valid_file_name(title: str | None, name: str) -> None:
    assert file_names([replace(SUMMARY, title=title)], "md") == [name]


def test_file_names_are_unique() -> None:
    other = replace(SUMMARY, id="5e551011-ffff-4000-8000-0000000000aa")
    nested = replace(SUMMARY, parent_ref="claude-code:77777777-1")
    names = file_names([SUMMARY, other, nested], "md")
    assert len(set(names)) == 3


def test_an_existing_file_is_overwritten_only_with_force(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("mine")
    with pytest.raises(DestinationError, match=r"exists.*--force") as caught:
        Exports.write_file(["new"], path)
    assert "--force" not in caught.value.reason  # only a hint: other interfaces do not have the option
    assert path.read_text() == "mine"
    Exports.write_file(["new"], path, force=True)
    assert path.read_text() == "new"


def test_nothing_is_written_if_one_of_the_files_exists(tmp_path: Path) -> None:
    summaries = [SUMMARY, replace(SUMMARY, id="77777777-0000", title="Other")]
    (tmp_path / file_names(summaries, "txt")[1]).write_text("mine")
    with pytest.raises(DestinationError):
        write_files(summaries, lambda _: iter(["x"]), tmp_path, "txt")
    assert len(list(tmp_path.iterdir())) == 1


def test_an_export_does_not_follow_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("mine")
    (tmp_path / "a.md").symlink_to(tmp_path / "target")
    with pytest.raises(DestinationError):
        Exports.write_file(["new"], tmp_path / "a.md", force=True)
    assert (tmp_path / "target").read_text() == "mine"


def test_a_failed_export_leaves_no_file(tmp_path: Path) -> None:
    def failing_chunks() -> object:
        yield "half"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        Exports.write_file(failing_chunks(), tmp_path / "a.md")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def history(tmp_path: Path) -> History:
    write_plain(tmp_path / "claude")
    empty = Transcript("77777777-0000-4000-8000-0000000000aa", seed=9)
    empty.user("Only a question.").write(tmp_path / "claude")
    history = History(roots=[NamedRoot("claude-code", tmp_path / "claude")], home=tmp_path / "home")
    history.sync()
    return history


def test_exported_json_equals_the_output_of_show(history: History) -> None:
    with history:
        for summary in history.all_sessions():
            exported = "".join(history.export_session(summary.ref, "json"))
            session = history.get_session(summary.ref)
            reported = history.transcript.reported_cost(summary)
            assert exported.encode() == encode_json(session_document(session, reported_cost_usd=reported))


def test_json_lines_contain_the_summary_and_the_messages(history: History) -> None:
    with history:
        session = history.get_session("5e551011")
        lines = "".join(history.export_session("5e551011", "jsonl")).splitlines()
    document = session_document(session)
    messages = document.pop("messages")
    del document["is_complete"]  # of the whole document, not of the summary
    assert [msgspec.json.decode(line) for line in lines] == msgspec.json.decode(
        msgspec.json.encode([document, *messages])
    )


def test_an_html_export_has_an_index_page_with_links(history: History, tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    with history:
        exported = history.exports.write_files(
            history.all_sessions(), tmp_path / "out", "html", progress=lambda *step: steps.append(step)
        )
    assert exported.index == tmp_path / "out" / "index.html"
    page = exported.index.read_text("utf-8")
    assert all(f'href="{path.name}"' in page for path in exported.files)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(
        ["index.html", *(path.name for path in exported.files)]
    )
    assert steps[-1][0] == steps[-1][1]


def test_a_subagent_follows_the_call_that_started_it(history: History) -> None:
    from backscroll.render.turns import Subagent, transcript_items

    with history:
        summary = history.find("5e551011")
        archive = history._stores.archive
        started = [Subagent(agent, call) for agent, call in archive.sessions.subagents(summary)]
        events = list(transcript_items(summary, started, archive.messages.of_session))
    (start,) = [index for index, event in enumerate(events) if isinstance(event, SubagentStart)]
    before = events[start - 1]
    assert isinstance(before, MessageItem)
    assert before.message.tool is not None
    assert before.message.tool.id == started[0].tool_call_id
    inside = events[start + 1]
    assert isinstance(inside, MessageItem)
    assert inside.message.content == "Where are zones read?"
