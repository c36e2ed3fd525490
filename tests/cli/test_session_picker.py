"""``resume`` without a ref: choose a session from a list."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from backscroll.cli.session_picker import Picker, _parse_keys
from backscroll.testing.claude_code import Transcript
from tests.cli.run_command import Shell
from tests.cli.terminal import TERMINATE, type_in_terminal
from tests.render.sessions import SUMMARY

FERRY = "10000000-0000-4000-8000-000000000000"
QUAY = "20000000-0000-4000-8000-000000000000"
QUESTION = "Resume which session?"


def picker(*titles: str) -> Picker:
    sessions = [replace(SUMMARY, title=title, id=str(number)) for number, title in enumerate(titles)]
    return Picker([replace(session, workspace_name="harbour") for session in sessions])


def shown(picker: Picker) -> list[str | None]:
    return [session.title for session in picker.matches]


def test_typing_keeps_sessions_with_all_words_in_their_order() -> None:
    chooser = picker("Ferry times", "Quay", "Times of the ferry", "FERRY TIMES")
    for key in "ferry tim":
        chooser.press(key, 10)
    assert shown(chooser) == ["Ferry times", "Times of the ferry", "FERRY TIMES"]
    chooser.press("delete word", 10)
    assert chooser.query == "ferry"
    chooser.press("clear", 10)
    assert len(chooser.matches) == 4


def test_sessions_are_found_by_workspace_id_and_first_prompt() -> None:
    session = replace(SUMMARY, first_message_preview="When does it leave?", tags=("later",))
    for text in ("FERRY", "claude-code", "5e551011", "does it leave", "main", "#later"):
        chooser = Picker([session, replace(SUMMARY, id="other", workspace_name="quay", source="cursor")])
        chooser.filter(text)
        assert chooser.choice is session


def test_the_selection_moves_within_the_list() -> None:
    chooser = picker(*map(str, range(30)))
    for key, selected in [
        ("up", 0), ("down", 1), ("page down", 11), ("end", 29), ("down", 29), ("page up", 19), ("home", 0),
    ]:  # fmt: skip
        chooser.press(key, 10)
        assert chooser.selected == selected
        assert chooser.selected in chooser.visible(10)
        assert len(chooser.visible(10)) == 10


@given(
    st.lists(st.sampled_from(["up", "down", "page down", "end", "backspace", "clear", "a", "1", " ", "ü"]))
)
def test_the_selection_is_always_visible(keys: list[str]) -> None:
    chooser = picker(*(f"a{number}" for number in range(15)))
    for key in keys:
        chooser.press(key, 4)
        assert not chooser.matches or chooser.selected in chooser.visible(4)
        assert (chooser.choice is None) == (not chooser.matches)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("ab", ["a", "b"]),
        ("\x1b[A\x1bOB", ["up", "down"]),
        ("\x1b", ["cancel"]),
        ("\x1b[200~x\x1b[1;5C", ["x"]),
        ("é\r\x7f\x03\x00", ["é", "enter", "backspace", "interrupt"]),
    ],
)
def test_input_of_a_terminal_is_split_into_keys(text: str, keys: list[str]) -> None:
    assert list(_parse_keys(text)) == keys


@given(st.text())
def test_any_input_gives_printable_characters_and_names(text: str) -> None:
    assert all(len(key) > 1 or key.isprintable() for key in _parse_keys(text))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    for seed, (id_, name) in enumerate(((FERRY, "ferry"), (QUAY, "quay"))):
        folder = tmp_path / name
        folder.mkdir()
        Transcript(id_, seed=seed, cwd=str(folder)).user(f"About the {name}").assistant("Yes.").write(
            shell.root
        )
    shell.sync()
    return shell


@pytest.mark.parametrize("environ", [{}, {"NO_COLOR": "1"}])
def test_the_session_that_the_user_chooses_is_resumed(shell: Shell, environ: dict[str, str]) -> None:
    typed = [(QUESTION, "ferr"), ("ferr█", "\r")]
    code, output = type_in_terminal(*shell.options, "resume", "--print", typed=typed, **environ)
    assert code == 0
    assert f"claude --resume {FERRY}" in output
    assert ("\x1b[36m" in output) == (not environ)


def test_the_command_of_the_chosen_session_can_be_piped(shell: Shell, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        typed = [(QUESTION, "\x1b[B"), ("2 of 2", "\x1b[A"), ("1 of 2", "quay\n")]
        code, _ = type_in_terminal(*shell.options, "resume", "--json", typed=typed, stdout=out.fileno())
    assert code == 0
    assert QUAY in json.loads((tmp_path / "out").read_text())["ref"]


@pytest.mark.parametrize(("key", "code"), [("\x1b", 1), ("\x04", 1), ("\x03", 130), (TERMINATE, 143)])
def test_leaving_the_list_resumes_nothing_and_restores_the_terminal(
    shell: Shell, key: str, code: int
) -> None:
    found, output = type_in_terminal(*shell.options, "resume", typed=[(QUESTION, key)])
    assert found == code
    assert "claude" not in output.rpartition("\x1b[?25h")[2]  # the cursor is visible again


def test_a_filter_without_matches_can_be_changed(shell: Shell) -> None:
    typed = [(QUESTION, "zzz\r"), ("No sessions match.", "\x15quay\r")]
    code, output = type_in_terminal(*shell.options, "resume", "--print", typed=typed)
    assert (code, QUAY in output) == (0, True)


def test_a_simple_terminal_gets_a_numbered_list(shell: Shell) -> None:
    prompt = "Number, or words to filter (empty to cancel)"
    typed = [(prompt, "zzz\n"), ("No sessions match.", ""), (prompt, "ferry\n"), (prompt, "1\n")]
    code, output = type_in_terminal(*shell.options, "resume", "--print", typed=typed, TERM="dumb")
    assert code == 0
    assert f"claude --resume {FERRY}" in output
    assert "\x1b" not in output
    code, output = type_in_terminal(*shell.options, "resume", typed=[(prompt, "\n")], TERM="dumb")
    assert code == 1
    assert "Nothing was resumed." in output


def test_without_a_terminal_a_ref_is_required(shell: Shell) -> None:
    result = shell.run("resume")
    assert (result.code, result.out) == (2, "")
    assert "Not a terminal: pass the REF of a session." in result.err


def test_an_empty_archive_has_nothing_to_choose(tmp_path: Path) -> None:
    (tmp_path / "claude").mkdir()
    shell = Shell(tmp_path)
    code, output = type_in_terminal(*shell.options, "resume", typed=[("No history found", "")])
    assert code == 1
    assert QUESTION not in output
