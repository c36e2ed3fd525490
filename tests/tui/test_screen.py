"""The terminal UI on the demo: found, read, folded, marked."""

from pathlib import Path

from textual.events import Key

from backscroll.history import History
from tests.tui.screen import Seat, sit


def test_the_newest_session_stands_first_and_is_shown_beside_the_list(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        assert "46 sessions" in seat.lines()[0]
        assert seat.lines()[1].startswith("▌A page about the year")
        await seat.sees("I want a page about my year")

    sit(synced, script)


def test_moving_in_the_list_shows_another_session(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        await seat.press("j")
        await seat.sees("write a CHANGELOG.md entry")
        await seat.press("G")
        assert seat.app.sessions.chosen == 45
        await seat.press("g")
        await seat.sees("I want a page about my year")

    sit(synced, script)


def test_the_list_is_filtered_while_somebody_types(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        await seat.press("f")
        await seat.type("dead lin")
        await seat.sees("1 of 46 sessions")
        assert seat.lines()[2].startswith("▌Fix dead links found by lintel")
        await seat.press("escape", "escape")
        await seat.sees("Backscroll · 46 sessions")

    sit(synced, script)


def test_a_search_finds_while_somebody_types_and_opens_where_it_was_said(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        await seat.press("slash", *"clock")
        await seat.sees("found for 'clock'")
        await seat.sees("hour is meant when the clocks change")
        await seat.press("enter", "enter")
        assert seat.app.transcript.has_focus
        await seat.sees("┆ 9193a2e Decide which hour is meant when the clocks change")
        row = seat.app.transcript.layout_.row(seat.app.transcript.cursor)
        assert row is not None
        assert "clocks" in row.text

    sit(synced, script)


def test_what_is_typed_at_once_goes_into_the_line(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        for key in ("slash", *"clocks/or"):
            seat.app.post_message(Key(key, None if key == "slash" else key))
        await seat.until(lambda: seat.app.line.value == "clocks/or", "written")
        assert seat.app.order == "newest"
        assert seat.app.is_running
        await seat.press("escape", "escape", "w")
        await seat.sees("Only sessions of this workspace")
        for key in "fi":
            seat.app.post_message(Key(key, key))
        await seat.until(lambda: "fi" in seat.text, "written")

    sit(synced, script)


def test_who_comes_back_before_the_other_session_is_there_stays(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        app = seat.app
        await seat.until(lambda: app.transcript.is_complete and app.read_summary is not None, "read")
        first, second = (summary.ref for summary in app.shelf.every[:2])
        app.read(second)
        app.read(first)
        told: list[str] = []
        app.ask("read", lambda _: "idle", told.append)
        await seat.until(lambda: bool(told), "idle")
        assert app.read_summary is not None
        assert app.read_summary.ref == first
        await seat.sees("I want a page about my year")

    sit(synced, script)


def test_an_answer_that_comes_late_is_dropped(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        seat.app.words = "clocks"
        seat.app.search()
        seat.app.words = "redirects"
        seat.app.search()
        await seat.sees("found for 'redirects'")
        assert seat.app.found is not None
        await seat.pilot.pause(0.1)
        with History(home=synced) as history:
            wanted = history.search_sessions("redirects*")
        assert [match.message_id for match in seat.app.found.data] == [
            match.message_id for match in wanted.data
        ]

    sit(synced, script)


def test_it_can_begin_with_a_search(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        await seat.sees("found for 'clocks'")

    sit(synced, script, words="clocks")


def test_what_is_not_found_is_said(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        await seat.press("slash")
        await seat.type("xylophonequux")
        await seat.sees("Nothing was found.")
        await seat.press("escape", "escape")
        await seat.sees("46 sessions")

    sit(synced, script)


def test_n_goes_from_match_to_match_and_back(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        transcript = seat.app.transcript
        await seat.sees("found for 'clocks'")
        await seat.press("j", "enter")
        await seat.until(lambda: len(seat.app._places or ()) == 3, "three places")
        await seat.until(lambda: transcript.is_complete and transcript._target is None, "arrived")
        first = transcript.cursor
        seen = {first}
        for _ in range(4):
            await seat.press("N")
            await seat.until(lambda: transcript._target is None, "arrived")
        top = transcript.cursor
        for _ in range(12):
            await seat.press("n")
            await seat.until(lambda: transcript._target is None, "arrived")
            seen.add(transcript.cursor)
            assert transcript._marked_lines(transcript.layout_.block_at(transcript.cursor))
        assert len(seen) >= 3
        assert transcript.cursor > top
        await seat.sees("There is no other match in this session.")

    sit(synced, script, words="clocks")


def test_a_call_is_a_line_until_it_is_unfolded(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        await seat.press("j")
        await seat.sees("▸ Shell  git log --oneline --reverse")
        await seat.press("tab")
        transcript = seat.app.transcript
        while transcript.current is None or transcript.current.kind != "call":
            await seat.press("down")
        assert "Store departures in UTC" not in seat.text
        await seat.press("enter")
        await seat.sees("┆ 4ddad8c Store departures in UTC")
        await seat.press("enter")
        await seat.misses("Store departures in UTC")

    sit(synced, script)


def test_x_unfolds_everything_and_keeps_the_place(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        transcript = seat.app.transcript
        await seat.press("j")
        await seat.sees("▸ Shell  git log")
        await seat.press("tab", "G")
        await seat.until(lambda: transcript.is_complete, "read")
        before = transcript.current
        await seat.press("x")
        await seat.until(lambda: transcript.is_complete and transcript.layout_.height > 35, "unfolded")
        assert transcript.current is not None
        assert before is not None
        assert transcript.current.place == before.place
        assert all(block.body is not None for block in transcript.layout_.blocks)
        await seat.press("x")
        await seat.until(lambda: transcript.is_complete and transcript.layout_.height < 35, "folded")

    sit(synced, script)


def test_words_are_found_in_the_session_that_is_read(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        await seat.sees("I want a page about my year")
        await seat.press("tab", "f")
        await seat.type("december")
        await seat.press("enter")
        await seat.until(lambda: bool(seat.app._places), "found")
        assert seat.app.transcript.has_focus
        await seat.until(
            lambda: (
                "December" in (seat.app.transcript.layout_.row(seat.app.transcript.cursor) or _NOTHING).text
            ),
            "gone there",
        )

    sit(synced, script)


def test_only_one_workspace_is_shown_when_it_was_picked(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        await seat.press("w")
        await seat.sees("Only sessions of this workspace:")
        await seat.type("saltern")
        await seat.press("enter")
        await seat.sees("of 46 sessions · saltern")
        wanted = seat.app.shelf.wanted(seat.app.narrowing, seat.app.order)
        assert {summary.workspace_name for summary in wanted} == {"saltern"}
        await seat.press("escape")
        await seat.sees("Backscroll · 46 sessions")

    sit(synced, script)


def test_only_one_source_is_searched_when_it_was_picked(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        await seat.press("S")
        await seat.sees("Only sessions of this source:")
        await seat.type("cursor-cli")
        await seat.press("enter")
        await seat.sees("sessions · cursor-cli")
        await seat.press("slash")
        await seat.type("clocks")
        await seat.sees("found for 'clocks'")
        assert seat.app.found is not None
        assert {match.source for match in seat.app.found.data} == {"cursor-cli"}

    sit(synced, script)


def test_the_order_changes(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        await seat.press("o")
        await seat.sees("46 sessions · oldest")
        assert not seat.lines()[1].startswith("▌A page about the year")
        await seat.press("o")
        await seat.sees("46 sessions · longest")

    sit(synced, script)


def test_every_key_is_on_the_help_page(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        await seat.press("question_mark")
        await seat.sees("search everything that was said")
        await seat.sees("resume it in its own tool")
        await seat.press("escape")
        await seat.misses("search everything that was said")

    sit(synced, script, size=(100, 50))


def test_it_is_light_when_asked(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        assert seat.app.theme == "textual-dark"
        await seat.press("D")
        assert seat.app.theme == "textual-light"

    sit(synced, script)


def test_the_mouse_chooses_reads_and_unfolds(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        await seat.pilot.click("#sessions", offset=(5, 2))
        await seat.sees("▸ Shell  git log")
        await seat.pilot.click("#sessions", offset=(5, 2))
        assert seat.app.transcript.has_focus
        line = next(place for place, text in enumerate(seat.lines()) if "▸ Shell  git log" in text)
        await seat.pilot.click("#transcript", offset=(8, line - 1))
        await seat.sees("┆ 4ddad8c Store departures in UTC")

    sit(synced, script)


def test_a_key_at_the_bottom_can_be_clicked(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        place = seat.lines()[-1].index("? Help")
        await seat.pilot.click("#keys", offset=(place, 0))
        await seat.sees("search everything that was said")

    sit(synced, script, size=(140, 50))


def test_more_is_found_when_somebody_comes_to_the_end(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        await seat.sees("found for 'the'")
        assert seat.app.found is not None
        total = seat.app.found.total or 0
        assert total > 20
        await seat.press("G")
        await seat.until(lambda: seat.app.sessions.count == total, "found more")
        assert len({match.session_ref for match in (seat.app.found or _NO_MATCHES).data}) == total

    sit(synced, script, words="the")


def test_a_subagent_is_folded_where_it_was_started(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        await seat.sees("I want a page about my year")
        every = seat.app.shelf.every
        seat.app.sessions.choose(next(n for n, summary in enumerate(every) if summary.agent_ids))
        transcript = seat.app.transcript
        await seat.until(lambda: seat.app.read_summary is not None, "begun")
        await seat.until(
            lambda: (
                transcript.is_complete and any(block.kind == "agent" for block in transcript.layout_.blocks)
            ),
            "read",
        )
        layout = transcript.layout_
        number = next(n for n, block in enumerate(layout.blocks) if block.kind == "agent")
        assert layout.blocks[number - 1].kind == "call"
        assert layout.is_hidden(number + 1)
        transcript.focus()
        await seat.until(lambda: transcript.has_focus, "in the transcript")
        transcript._stand(layout.top_of(number))
        await seat.press("enter")
        assert not layout.is_hidden(number + 1)

    sit(synced, script)


class _Nothing:
    text = ""


_NOTHING = _Nothing()


class _NoMatches:
    data = ()


_NO_MATCHES = _NoMatches()
