"""Tideline, a web service for ferry timetables: the rest of the summer."""

from datetime import timedelta

from backscroll.testing.claude_code import fork, tool_calls
from backscroll.testing.claude_code.side_files import write_plan
from backscroll.testing.demo.claude_session import SubagentTask
from backscroll.testing.demo.image import chart
from backscroll.testing.demo.projects import tideline_files as files
from backscroll.testing.demo.sample_history import SampleHistory, utc_time


def add_sessions(history: SampleHistory) -> None:
    """Add the sessions from the API to the accessible board."""
    _api(history)
    _rate_limit(history)
    _async_given_up(history)
    _accessible_board(history)


def _api(history: SampleHistory) -> None:
    session = history.claude_session(
        "tideline/departures-api",
        "Plan and build /api/departures",
        utc_time(7, 21, "09:02"),
        version="2.1.230",
        model="claude-opus-4-8",
    )
    session.transcript.slug = "tidy-harbour-bell"
    session.transcript.permission_mode("plan")
    session.prompt(
        "Two people asked for an API. Plan one: departures as JSON, polite to pollers. No framework.",
        mode="plan",
    )
    session.delegate(
        SubagentTask(
            "Find who reads departures",
            "List every caller of parse_departures and next_departure with the file and what it does with "
            "the result.",
            "Two callers: page.render formats every row as HTML; next_departure is called by nobody. Rows "
            "in data/summer.csv: 4; the operator's full table has 214.",
            [
                tool_calls.grep(
                    "parse_departures|next_departure", ["tideline/page.py", "tideline/timetable.py"]
                ),
                tool_calls.read(f"{session.folder}/tideline/page.py", files.PAGE.removesuffix("\n")),
            ],
        )
    )
    session.think("ETag over content is enough; no clock involved. Pagination is not worth it for 19 KB.")
    session.run(tool_calls.exit_plan(files.PLAN))
    session.todo(("answer() with ETag", "in_progress"), ("tests", "pending"), ("README", "pending"))
    session.write("tideline/api.py", files.API)
    session.queue("also say in the README that times carry their offset")
    session.write(
        "tests/test_api.py",
        "from datetime import UTC, datetime\n\nfrom tideline.api import answer, etag\nfrom "
        "tideline.timetable import Departure\n\n"
        'BOARD = [Departure("Skerry", datetime(2026, 7, 6, 6, 5, tzinfo=UTC))]\n\n\n'
        "def test_a_caller_who_has_the_board_is_told_nothing_new() -> None:\n"
        "    status, headers, body = answer(BOARD, etag(BOARD))\n"
        '    assert (status, body) == (304, b"")\n\n\n'
        "def test_times_carry_their_offset() -> None:\n"
        '    assert b"2026-07-06T06:05:00+00:00" in answer(BOARD)[2]\n',
    )
    session.edit(
        "README.md",
        "    python -m tideline.page data/summer.csv\n",
        "    python -m tideline.page data/summer.csv\n\n"
        "`/api/departures` answers with JSON. Times carry their offset. Send `If-None-Match` and you get "
        "304 until\n"
        "the board changes.\n",
    )
    session.shell("python -m pytest -q", "......\n6 passed in 0.11s")
    session.todo(("answer() with ETag", "completed"), ("tests", "completed"), ("README", "completed"))
    session.reply(
        "`answer()` gives 200 with an ETag or 304. The tag is a hash over route and time, so it changes "
        "exactly when the answer would. I left pagination out as planned: 214 rows are 19 KB."
    )
    session.commit(
        "Add /api/departures\n\nETag over route and time, so that pollers get 304 until the board changes."
    )
    session.transcript.pr_link(7, "tideline/tideline")
    write_plan(history.claude_root, session.transcript, files.PLAN)


def _rate_limit(history: SampleHistory) -> None:
    session = history.cursor_session(
        "tideline/rate-limit", "429 from the operator's feed", utc_time(7, 29, "15:44"), model="gpt-5.2-codex"
    )
    session.prompt("Since noon the live feed answers 429 every few minutes. How often are we allowed to ask?")
    session.shell(
        "curl -sI 'https://feed.operator.example/v2/live?key=***'",
        "HTTP/2 429\nretry-after: 240\nx-ratelimit-limit: 60\nx-ratelimit-window: 3600",
    )
    session.think(
        "60 per hour and key. Two instances at 45 s each make 160. 90 s with one instance makes 40."
    )
    session.reply(
        "60 requests an hour per key. The cron job asks every 45 seconds, which is 80 an hour, and the "
        "test instance uses the same key. I would poll every 90 seconds: 40 an hour, so a restart or a "
        "second instance for a few minutes stays below the limit. Jitter keeps two instances from asking "
        "at the same moment."
    )
    session.prompt(
        "Do it. Honour Retry-After. And the test instance gets its own key:"
        " FEED_API_KEY=opf-7hQ2vX9bRk4Lm8TzW3c"
    )
    session.write("tideline/poll.py", files.POLL)
    session.reject_command("curl -s 'https://feed.operator.example/v2/live?key=***' | head -c 200")
    session.prompt("Don't call the live feed again, we are still blocked for four minutes.")
    session.reply(
        "Understood. `poll.feed` waits out a 429 for as long as Retry-After says; nothing was fetched."
    )
    session.commit_by_hand("Poll the operator's feed every 90 seconds")


def _async_given_up(history: SampleHistory) -> None:
    session = history.claude_session(
        "tideline/async-poller",
        "Try an asynchronous poller",
        utc_time(8, 4, "10:15"),
        version="2.1.232",
        model="claude-opus-4-8",
    )
    session.prompt("Would the poller be better with asyncio? Try it on poll.py, I want to see the numbers.")
    session.read("tideline/poll.py")
    session.edit(
        "tideline/poll.py",
        "def feed(url: str) -> Iterator[bytes]:",
        "async def feed(url: str) -> AsyncIterator[bytes]:",
    )
    session.edit(
        "tideline/poll.py",
        "from collections.abc import Iterator",
        "from collections.abc import AsyncIterator",
    )
    session.transcript.system("api_error", level="error", error={"status": 529, "message": "Overloaded"})
    session.transcript.error("API Error: 529 Overloaded. Please try again later.", status=529)
    session.prompt("go on")
    session.note("urllib blocks, so this needs httpx for the request itself.")
    session.reject_edit("pyproject.toml", "dependencies = []", 'dependencies = ["httpx>=0.28"]')
    session.transcript.interrupt(for_tool=True)
    session.prompt("No new dependency for one request every 90 seconds. What would asyncio gain at all?")
    session.shell(
        "python /tmp/bench_poll.py --compare",
        "threads: 1 request, 38.2 ms cpu/h, 21.4 MB\nasyncio: 1 request, 37.1 ms cpu/h, 26.9 MB",
    )
    session.reply(
        "Almost nothing: 37.1 against 38.2 ms of CPU an hour, 3 %, and 5.5 MB more memory. There is one "
        "request in flight at any time; asyncio pays off with hundreds. I recommend leaving poll.py as it "
        "is."
    )
    session.prompt("Then throw it away.")
    session.revert("tideline/poll.py")
    session.reply("poll.py is back to what is committed. Nothing is left of the attempt.")


def _accessible_board(history: SampleHistory) -> None:
    tree = history.repositories["tideline"].worktree("a11y")
    session = history.claude_session(
        "tideline/accessible-board",
        "Make the board readable for screen readers",
        utc_time(8, 19, "12:40"),
        version="2.1.236",
        model="claude-sonnet-5",
        repository=tree,
    )
    session.transcript.state(
        "worktree-state",
        worktreeSession={
            "originalCwd": history.repositories["tideline"].path,
            "worktreePath": tree.path,
            "worktreeName": "a11y",
            "worktreeBranch": "a11y",
            "originalBranch": "main",
            "originalHeadCommit": tree.head.id if tree.head else "",
            "sessionId": session.id,
        },
    )
    session.prompt(
        "This is what the accessibility checker says about the board: score 61, table without headers. "
        "Fix what it shows, in this worktree.",
        image=chart([61, 39], width=96, height=48),
    )
    session.read("tideline/page.py")
    session.edit(
        "tideline/page.py",
        '    return f"<table>{rows}</table>"\n',
        '    head = \'<tr><th scope="col">Route</th><th scope="col">Leaves</th></tr>\'\n'
        '    return f"<table><caption>Next departures</caption>{head}{rows}</table>"\n',
    )
    session.reply(
        "The table now has a caption and column headers with `scope`. Those were the two failures worth "
        "points; the third, colour contrast, is in a stylesheet that is not in this repository."
    )
    session.commit_by_hand("Give the board a caption and headers", minutes=12, repository=tree)
    copy = fork(session.transcript, title=session.title, seed=8)
    copy.now = session.now + timedelta(hours=22)
    other = history.claude_session(
        "tideline/high-contrast",
        "High contrast theme",
        copy.now,
        version="2.1.236",
        model="claude-sonnet-5",
        repository=tree,
        transcript=copy,
    )
    other.prompt(
        "Same start, other question: could the board have a high contrast theme by prefers-contrast?"
    )
    other.reply(
        "Yes: `@media (prefers-contrast: more)` with black on #ffd400, contrast 14.9:1. It needs the "
        "stylesheet, which lives in the website's repository. I have written nothing; this waits until "
        "the stylesheet moves here, and the a11y branch should be merged first."
    )
