"""Tests of list, search, filters and transcript on the demo history."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.events import Key
from textual.widgets import Input

from backscroll.history.highlighting import filter_names
from backscroll.history.history import History
from backscroll.model.export import FORMATS
from backscroll.tui.session_list_panel import PREVIEW_DELAY_SECONDS
from tests.tui.ui_driver import UiDriver, run_ui


def test_the_newest_session_is_first_and_its_transcript_is_shown(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        assert "46 sessions" in ui.lines()[0]
        assert ui.lines()[1].startswith("▌A page about the year")
        await ui.wait_for_text("I want a page about my year")

    run_ui(demo_home, script)


@pytest.fixture
def _kathmandu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "NPT-5:45")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("_kathmandu")
def test_times_are_local(demo_home: Path) -> None:
    with History(home=demo_home) as history:
        started = history.find("1").created_at
    assert started is not None
    local = f"{started.astimezone():%Y-%m-%d %H:%M}"

    async def script(ui: UiDriver) -> None:
        await ui.wait_for_text("I want a page about my year")
        header, prompt, *_ = ui.app.transcript.text_layout.blocks
        details = header.body[1][0] if header.body else ""
        assert f"{local} to " in details
        assert " NPT · " in details
        assert prompt.right_label == local

    run_ui(demo_home, script)


def test_moving_in_the_list_shows_the_selected_session(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.press("j")
        await ui.wait_for_text("write a CHANGELOG.md entry")
        await ui.press("G")
        assert ui.app.sessions.selected_index == 45
        await ui.press("g")
        await ui.wait_for_text("I want a page about my year")

    run_ui(demo_home, script)


def test_the_list_is_filtered_as_the_user_types(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.press("f")
        await ui.type_text("dead lin")
        await ui.wait_for_text("1 of 46 sessions")
        assert ui.lines()[2].startswith("▌Fix dead links found by lintel")
        await ui.press("escape", "escape")
        await ui.wait_for_text("Backscroll · 46 sessions")

    run_ui(demo_home, script)


def test_a_search_runs_as_the_user_types_and_opens_the_matching_message(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.press("slash", *"cloc")  # no message has this word: it is a prefix
        await ui.wait_for_text("found for 'cloc'")
        await ui.wait_for_text("hour is meant when the clocks change")
        await ui.press("enter", "enter")
        assert ui.app.transcript.has_focus
        await ui.wait_for_text("┆ 9193a2e Decide which hour is meant when the clocks change")

        def is_at_match() -> bool:
            row = ui.app.transcript.text_layout.row_at(ui.app.transcript.cursor)
            return row is not None and "clocks" in row.text

        await ui.wait_until(is_at_match, "the cursor at the match")

    run_ui(demo_home, script)


def test_keys_pressed_right_after_opening_an_input_go_into_the_input(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        for key in ("slash", *"clocks/or"):
            ui.app.post_message(Key(key, None if key == "slash" else key))
        await ui.wait_until(lambda: ui.app.input_line.value == "clocks/or", "the typed text in the input")
        assert ui.app.list_order == "newest"
        assert ui.app.is_running
        await ui.press("escape", "escape", "w")
        await ui.wait_for_text("Filter by workspace")
        for key in "fi":
            ui.app.post_message(Key(key, key))
        await ui.wait_until(
            lambda: ui.app.screen.query_one(Input).value == "fi", "the typed text in the dialog"
        )

    run_ui(demo_home, script)


def test_returning_to_the_shown_session_cancels_loading_another(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        app = ui.app
        await ui.wait_until(lambda: app.transcript.is_complete and app.shown_session is not None, "a session")
        first, second = (summary.ref for summary in app.list_model.summaries[:2])
        app.show_transcript(second)
        app.show_transcript(first)
        results: list[str] = []
        app.run_in_worker("read", lambda _: "idle", results.append)
        await ui.wait_until(lambda: bool(results), "an idle worker")
        assert app.shown_session is not None
        assert app.shown_session.ref == first
        await ui.wait_for_text("I want a page about my year")

    run_ui(demo_home, script)


def test_results_of_an_outdated_search_are_discarded(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        ui.app.search_query = "clocks"
        ui.app.search()
        ui.app.search_query = "redirects"
        ui.app.search()
        await ui.wait_for_text("found for 'redirects'")
        assert ui.app.search_result is not None
        await ui.pilot.pause(0.1)
        with History(home=demo_home) as history:
            expected = history.search_sessions("redirects*")
        assert [match.message_id for match in ui.app.search_result.data] == [
            match.message_id for match in expected.data
        ]

    run_ui(demo_home, script)


def test_the_ui_can_start_with_a_search(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.wait_for_text("found for 'clocks'")

    run_ui(demo_home, script, search_query="clocks")


def test_a_search_without_matches_shows_a_notice(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.press("slash")
        await ui.type_text("xylophonequux")
        await ui.wait_for_text("No matches.")
        await ui.press("escape", "escape")
        await ui.wait_for_text("46 sessions")

    run_ui(demo_home, script)


def test_n_and_shift_n_go_to_the_next_and_previous_match(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        transcript = ui.app.transcript
        await ui.wait_for_text("found for 'clocks'")
        assert ui.app.search_result is not None
        counts = [match.match_count for match in ui.app.search_result.data]
        await ui.press(*["j"] * counts.index(3), "enter")
        await ui.wait_until(lambda: len(ui.app._matches or ()) == 3, "three matches")
        await ui.wait_until(
            lambda: transcript.is_complete and transcript._target is None, "the cursor at the target"
        )
        first = transcript.cursor
        seen = {first}
        for _ in range(4):
            await ui.press("N")
            await ui.wait_until(lambda: transcript._target is None, "the cursor at the target")
        top = transcript.cursor
        for _ in range(12):
            await ui.press("n")
            await ui.wait_until(lambda: transcript._target is None, "the cursor at the target")
            seen.add(transcript.cursor)
            assert transcript._match_lines(transcript.text_layout.block_at(transcript.cursor))
        assert len(seen) >= 3
        assert transcript.cursor > top
        await ui.wait_for_text("No more matches in this session.")

    run_ui(demo_home, script, search_query="clocks")


def test_enter_expands_and_folds_a_call(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.press("j")
        await ui.wait_for_text("▸ Shell  git log --oneline --reverse")
        await ui.press("tab")
        transcript = ui.app.transcript
        while transcript.current_block is None or transcript.current_block.kind != "call":
            await ui.press("down")
        assert "Store departures in UTC" not in ui.text
        await ui.press("enter")
        await ui.wait_for_text("┆ 4ddad8c Store departures in UTC")
        await ui.press("enter")
        await ui.wait_until_gone("Store departures in UTC")

    run_ui(demo_home, script)


def test_x_expands_and_folds_everything_and_keeps_the_position(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        transcript = ui.app.transcript
        await ui.press("j")
        await ui.wait_for_text("▸ Shell  git log")
        await ui.press("tab", "G")
        await ui.wait_until(lambda: transcript.is_complete, "a complete transcript")
        before = transcript.current_block
        await ui.press("x")
        await ui.wait_until(
            lambda: transcript.is_complete and transcript.text_layout.height > 35, "expanded blocks"
        )
        assert transcript.current_block is not None
        assert before is not None
        assert transcript.current_block.location == before.location
        assert all(block.body is not None for block in transcript.text_layout.blocks)
        await ui.press("x")
        await ui.wait_until(
            lambda: transcript.is_complete and transcript.text_layout.height < 35, "folded blocks"
        )

    run_ui(demo_home, script)


def test_f_in_the_transcript_finds_text_in_the_shown_session(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.wait_for_text("I want a page about my year")
        await ui.press("tab", "f")
        await ui.type_text("december")
        await ui.press("enter")
        await ui.wait_until(lambda: bool(ui.app._matches), "matches")
        assert ui.app.transcript.has_focus
        await ui.wait_until(
            lambda: (
                "December"
                in (ui.app.transcript.text_layout.row_at(ui.app.transcript.cursor) or _EMPTY_ROW).text
            ),
            "the cursor at the match",
        )

    run_ui(demo_home, script)


def test_the_list_can_be_filtered_by_workspace(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.press("w")
        await ui.wait_for_text("Filter by workspace:")
        await ui.type_text("saltern")
        await ui.press("enter")
        await ui.wait_for_text("of 46 sessions · saltern")
        summaries = ui.app.list_model.select(ui.app.list_filter, ui.app.list_order)
        assert {summary.workspace_name for summary in summaries} == {"saltern"}
        await ui.press("escape")
        await ui.wait_for_text("Backscroll · 46 sessions")

    run_ui(demo_home, script)


def test_a_search_can_be_filtered_by_source(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.press("S")
        await ui.wait_for_text("Filter by source:")
        await ui.type_text("cursor-cli")
        await ui.press("enter")
        await ui.wait_for_text("sessions · cursor-cli")
        await ui.press("slash")
        await ui.type_text("clocks")
        await ui.wait_for_text("found for 'clocks'")
        assert ui.app.search_result is not None
        assert {match.source for match in ui.app.search_result.data} == {"cursor-cli"}

    run_ui(demo_home, script)


def test_o_changes_the_order_of_the_list(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.press("o")
        await ui.wait_for_text("46 sessions · oldest")
        assert not ui.lines()[1].startswith("▌A page about the year")
        await ui.press("o")
        await ui.wait_for_text("46 sessions · longest")

    run_ui(demo_home, script)


@pytest.mark.parametrize("size", [(140, 40), (80, 24)])
def test_a_change_of_the_order_keeps_the_session_being_read(demo_home: Path, size: tuple[int, int]) -> None:
    async def script(ui: UiDriver) -> None:
        app = ui.app
        await ui.press("j", "enter")
        await ui.wait_for_text("write a CHANGELOG.md entry")
        shown = app.shown_session
        assert shown is not None
        await ui.press("o")
        await ui.wait_for_text("46 sessions · oldest")
        await ui.pilot.pause(2 * PREVIEW_DELAY_SECONDS)
        assert app.shown_session == shown
        assert "write a CHANGELOG.md entry" in ui.text
        assert app.sessions.selected_ref == shown.ref

    run_ui(demo_home, script, size=size)


def test_the_help_names_every_format_and_filter(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.press("question_mark")
        await ui.wait_for_text("search all sessions")
        await ui.wait_for_text("resume it in its own tool")
        for name in (*(f".{one}" for one in FORMATS), *(f"{one}:" for one in filter_names())):
            await ui.wait_for_text(name)
        await ui.press("escape")
        await ui.wait_until_gone("search all sessions")

    run_ui(demo_home, script, size=(100, 50))


def test_shift_d_switches_to_the_light_theme(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        assert ui.app.theme == "textual-dark"
        await ui.press("D")
        assert ui.app.theme == "textual-light"

    run_ui(demo_home, script)


def test_mouse_clicks_select_open_and_expand(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.pilot.click("#sessions", offset=(5, 2))
        await ui.wait_for_text("▸ Shell  git log")
        await ui.pilot.click("#sessions", offset=(5, 2))
        assert ui.app.transcript.has_focus
        line = next(index for index, text in enumerate(ui.lines()) if "▸ Shell  git log" in text)
        await ui.pilot.click("#transcript", offset=(8, line - 1))
        await ui.wait_for_text("┆ 4ddad8c Store departures in UTC")

    run_ui(demo_home, script)


def test_a_key_in_the_footer_can_be_clicked(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        column = ui.lines()[-1].index("? Help")
        await ui.pilot.click("#keys", offset=(column, 0))
        await ui.wait_for_text("search all sessions")

    run_ui(demo_home, script, size=(140, 50))


def test_scrolling_to_the_end_loads_more_results(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.wait_for_text("found for 'the'")
        assert ui.app.search_result is not None
        total = ui.app.search_result.total or 0
        assert total > 20
        await ui.press("G")
        await ui.wait_until(lambda: ui.app.sessions.entry_count == total, "all results")
        assert len({match.session_ref for match in (ui.app.search_result or _EMPTY_RESULT).data}) == total

    run_ui(demo_home, script, search_query="the")


def test_a_subagent_is_folded_below_the_call_that_started_it(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.wait_for_text("I want a page about my year")
        summaries = ui.app.list_model.summaries
        ui.app.sessions.select(next(n for n, summary in enumerate(summaries) if summary.agent_ids))
        transcript = ui.app.transcript
        await ui.wait_until(lambda: ui.app.shown_session is not None, "a session")
        await ui.wait_until(
            lambda: (
                transcript.is_complete
                and any(block.kind == "subagent" for block in transcript.text_layout.blocks)
            ),
            "a transcript with a subagent",
        )
        layout = transcript.text_layout
        index = next(n for n, block in enumerate(layout.blocks) if block.kind == "subagent")
        assert layout.blocks[index - 1].kind == "call"
        assert layout.is_hidden(index + 1)
        transcript.focus()
        await ui.wait_until(lambda: transcript.has_focus, "the focus in the transcript")
        transcript._move_cursor(layout.first_line(index))
        await ui.press("enter")
        assert not layout.is_hidden(index + 1)

    run_ui(demo_home, script)


class _EmptyRow:
    text = ""


_EMPTY_ROW = _EmptyRow()


class _EmptyResult:
    data = ()


_EMPTY_RESULT = _EmptyResult()
