"""Tests of unusual search queries, and of moving to matches from the list of results."""

from pathlib import Path

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing.claude_code import Transcript
from tests.tui.ui_driver import UiDriver, run_ui

INVALID_FILTER = "'since:xyz' is not a valid filter; searched for it as text."
EXACT_TEXT = "The query contains no words; searched for it as exact text."


def test_an_invalid_filter_is_mentioned_when_it_is_typed(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.press("slash")
        await ui.type_text("clocks since:xyz")
        await ui.wait_for_text("found for 'clocks since:xyz'")
        assert "is not a valid filter" not in ui.text  # it may be unfinished
        await ui.press("enter")
        await ui.wait_for_text(INVALID_FILTER)
        await ui.press("escape")
        await ui.wait_until_gone("is not a valid filter")

    run_ui(demo_home, script)


def test_an_invalid_filter_before_the_last_word_is_mentioned_at_once(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.press("slash")
        await ui.type_text("since:xyz clocks")
        await ui.wait_for_text(INVALID_FILTER)

    run_ui(demo_home, script)


def test_a_query_without_words_is_searched_as_exact_text_after_enter(tmp_path: Path) -> None:
    home = tmp_path / "home"
    session = Transcript("5e551011-0000-4000-8000-0000000000d4", cwd="/home/zoe/ferry")
    session.user("Why is the ferry late?").assistant("Fog.").user("Sail ⛵ now").assistant("It sails ⛵.")
    session.write(tmp_path / "claude")
    with History(home=home, roots=[NamedRoot("claude-code", tmp_path / "claude")]) as history:
        history.sync()
        summary = history.find("1")
        assert history.find_in_session(summary, "⛵") == [(summary.ref, 2), (summary.ref, 3)]

    async def script(ui: UiDriver) -> None:
        await ui.press("slash")
        await ui.type_text("⛵")
        await ui.wait_for_text("Press Enter to search for it as exact text.")
        assert ui.app.search_result is None
        await ui.press("enter")
        await ui.wait_for_text("1 found for '⛵'")
        await ui.wait_for_text(EXACT_TEXT)
        await ui.wait_until(lambda: len(ui.app._matches or ()) == 2, "two matches")

    run_ui(home, script)


def test_the_ui_can_start_with_a_query_without_words(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.wait_for_text(EXACT_TEXT)
        await ui.wait_for_text("No matches.")

    run_ui(demo_home, script, search_query="⛵⛵")


def test_n_in_the_results_of_a_narrow_terminal_opens_the_selected_session(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.wait_for_text("found for 'clocks'")
        await ui.press("j", "n")
        await ui.wait_until(lambda: ui.app.transcript.has_focus, "the focus in the transcript")
        await ui.wait_for_text("hat about the night the clocks go back?")
        assert "No search is active" not in ui.text

    run_ui(demo_home, script, size=(80, 24), search_query="clocks")


def test_n_after_a_search_without_results_does_not_ask_for_a_search(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.wait_for_text("No matches.")
        await ui.press("n")
        await ui.wait_for_text("The search has no results.")

    run_ui(demo_home, script, search_query="xylophonequux")
