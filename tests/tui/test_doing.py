"""What is done with a session from the terminal UI, and what happens to it meanwhile."""

from pathlib import Path

from rich.cells import cell_len

from backscroll.config import NamedRoot
from backscroll.history import History
from backscroll.testing.claude_code import Transcript, tool_calls
from tests.tui.screen import Seat, sit

SESSION = "5e551011-0000-4000-8000-0000000000a1"
OTHER = "5e551011-0000-4000-8000-0000000000b2"


def write(root: Path, id_: str, *prompts: str) -> None:
    transcript = Transcript(id_, seed=1, cwd="/home/zoe/ferry")
    for prompt in prompts:
        transcript.user(prompt)
        transcript.assistant(f"Answer to: {prompt}")
    transcript.write(root)


def archive(tmp_path: Path, *prompts: str) -> tuple[Path, list[NamedRoot]]:
    """An archive of one session."""
    root, home = tmp_path / "claude", tmp_path / "home"
    write(root, SESSION, *prompts)
    roots = [NamedRoot("claude-code", root)]
    with History(home=home, roots=roots) as history:
        history.sync()
    return home, roots


def test_a_star_is_given_and_taken(own: Path) -> None:
    async def script(seat: Seat) -> None:
        await seat.press("s")
        await seat.sees("▌★ A page about the year")
        await seat.press("asterisk")
        await seat.sees("1 of 46 sessions · ★")
        await seat.press("s")
        await seat.sees("No session fits.")

    sit(own, script)


def test_tags_are_changed(own: Path) -> None:
    async def script(seat: Seat) -> None:
        await seat.press("t")
        await seat.sees("Tags of this session:")
        await seat.type("Later #year")
        await seat.press("enter")
        await seat.sees("#later #year")
        await seat.press("t")
        await seat.sees("Tags of this session:")
        for _ in range(len(" year")):
            await seat.press("backspace")
        await seat.press("enter")
        await seat.misses("#year")

    sit(own, script)
    with History(home=own) as history:
        assert history.annotations.tags() == {"later": 1}


def test_a_session_is_exported_once(synced: Path, tmp_path: Path) -> None:
    target = tmp_path / "year.html"

    async def export(seat: Seat) -> None:
        await seat.press("e")
        await seat.sees("Export to this file:")
        await seat.press("ctrl+u")
        await seat.type(str(target))
        await seat.press("enter")

    async def script(seat: Seat) -> None:
        await export(seat)
        await seat.until(target.exists, "written")
        await seat.sees("Wrote")
        await export(seat)
        await seat.sees("exists")

    sit(synced, script)
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_message_and_a_ref_are_copied(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        await seat.press("y")
        assert seat.app.clipboard.startswith("claude-code:")
        await seat.sees("I want a page about my year")
        await seat.press("tab", "right_square_bracket", "y")
        assert seat.app.clipboard.startswith("I want a page about my year")

    sit(synced, script)


def test_a_session_that_cannot_be_resumed_here_says_what_is_in_the_way(tmp_path: Path) -> None:
    home, roots = archive(tmp_path, "Why is the ferry late?")

    async def script(seat: Seat) -> None:
        await seat.press("r")
        await seat.sees("/home/zoe/ferry")

    sit(home, script, roots=roots)


def test_a_session_that_vanished_meanwhile_is_said_and_leaves_the_list(tmp_path: Path) -> None:
    home, roots = archive(tmp_path, "Why is the ferry late?")
    write(roots[0].path, OTHER, "Paint the quay")
    with History(home=home, roots=roots) as history:
        history.sync()

    async def script(seat: Seat) -> None:
        await seat.sees("2 sessions")
        chosen = seat.app.sessions.ref
        other = next(one.ref for one in seat.app.shelf.every if one.ref != chosen)
        with History(home=home, roots=roots) as history:
            history.archive_admin.forget(other)
        await seat.press("j")
        await seat.sees("Backscroll · 1 session ")
        await seat.sees("Answer to: ")  # of the session that is left
        await seat.sees("This session is no longer in the archive.")

    sit(home, script, roots=roots)


def test_what_is_said_meanwhile_appears_and_the_place_is_kept(tmp_path: Path) -> None:
    home, roots = archive(tmp_path, "Why is the ferry late?")

    async def script(seat: Seat) -> None:
        await seat.sees("Answer to: Why is the ferry late?")
        chosen = seat.app.sessions.ref
        await seat.until(lambda: seat.app.is_watching, "watching")
        write(roots[0].path, OTHER, "Paint the quay")
        await seat.sees("2 sessions")
        await seat.sees("Paint the quay")
        assert seat.app.sessions.ref == chosen
        write(roots[0].path, SESSION, "Why is the ferry late?", "And tomorrow?")
        await seat.sees("Answer to: And tomorrow?")

    sit(home, script, roots=roots, syncs=True)


def test_what_was_unfolded_stays_so_while_the_session_goes_on(tmp_path: Path) -> None:
    root, home = tmp_path / "claude", tmp_path / "home"
    roots = [NamedRoot("claude-code", root)]

    def held(*more: str) -> None:
        session = Transcript(SESSION, seed=1, cwd="/home/zoe/ferry")
        session.user("Look at the log")
        session.run(tool_calls.bash("tail log.txt", "the quay is closed\nthe ferry waits"), text="Looking.")
        for prompt in more:
            session.user(prompt)
            session.assistant(f"Answer to: {prompt}")
        session.write(root)

    held()
    with History(home=home, roots=roots) as history:
        history.sync()

    async def script(seat: Seat) -> None:
        await seat.sees("▸ Bash  tail log.txt")
        await seat.press("tab")
        while (block := seat.app.transcript.current) is None or block.kind != "call":
            await seat.press("down")
        await seat.press("enter")
        await seat.sees("┆ the ferry waits")
        await seat.press("home")
        await seat.until(lambda: seat.app.is_watching, "watching")
        held("And tomorrow?")
        await seat.sees("Answer to: And tomorrow?")
        await seat.sees("┆ the ferry waits")
        assert seat.app.transcript.cursor == 0

    sit(home, script, roots=roots, syncs=True)


def test_an_empty_history_says_where_it_looked_and_offers_the_demo(tmp_path: Path) -> None:
    roots = [NamedRoot("claude-code", tmp_path / "nothing")]

    async def script(seat: Seat) -> None:
        await seat.sees("No history found. Searched these folders:")
        await seat.sees("claude-code")
        await seat.sees("backscroll demo DIR")
        for key in ("j", "enter", "e", "y", "s", "t", "r", "n", "o", "w", "x", "tab", "escape", "G"):
            await seat.press(key)

    sit(tmp_path / "home", script, roots=roots)


def test_hostile_text_is_only_text(tmp_path: Path) -> None:
    home, roots = archive(
        tmp_path, "[bold]no[/bold] [@click=app.quit]x[/] \x1b]0;gotcha\x07\x1b[31mred \u202eback [/nothing]"
    )

    async def script(seat: Seat) -> None:
        await seat.sees("▌ [bold]no[/bold] [@click=app.quit]x[/] red back [/nothing]")
        assert "\x1b" not in seat.text
        assert "\u202e" not in seat.text
        assert "gotcha" not in seat.text

    sit(home, script, roots=roots)


def test_a_letter_that_takes_two_columns_moves_nothing(tmp_path: Path) -> None:
    home, roots = archive(tmp_path, "渡し船はなぜ遅れますか" * 12 + " 👩‍👩‍👧 ok")

    async def script(seat: Seat) -> None:
        await seat.sees("Answer to")
        rows = [line for line in seat.lines() if "渡" in line and "▕" in line]
        assert len(rows) > 2
        assert {cell_len(line[: line.index("▕")]) for line in seat.lines() if "▕" in line} == {57}
        assert all(cell_len(line) <= 140 for line in rows)

    sit(home, script, roots=roots)
