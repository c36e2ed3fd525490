"""Tideline, a web service for ferry timetables: September to November."""

from backscroll.testing import cursor
from backscroll.testing.claude_code import Call, tool_calls
from backscroll.testing.claude_code.side_files import write_tasks
from backscroll.testing.demo.claude_session import SubagentTask
from backscroll.testing.demo.projects import saltern_files
from backscroll.testing.demo.projects import tideline_files as files
from backscroll.testing.demo.sample_history import SampleHistory, utc_time

WORKSPACE = "harbour.code-workspace"  # Tideline and Saltern in one window


def add_sessions(history: SampleHistory) -> None:
    """Add the sessions from the water levels to the release after the clock change."""
    _levels_on_the_board(history)
    _store(history)
    _typo_by_hand(history)
    _after_midnight(history)
    _cancellations(history)
    _incident(history)
    _release(history)


def _levels_on_the_board(history: SampleHistory) -> None:
    saltern = history.repositories["saltern"]
    session = history.cursor_session(
        "tideline/water-levels",
        "Show water levels on the board",
        utc_time(9, 2, "09:20"),
        model="claude-4.6-opus-thinking",
        workspace=cursor.multi_root(f"{history.home}/projects/{WORKSPACE}"),
    )
    session.prompt(
        "Both projects are open. Skippers want the water level next to each departure. Saltern has the "
        "levels; how should Tideline get them?"
    )
    session.delegate(
        "Find the level schema",
        "What does saltern store per reading, and in which unit?",
        "Table reading: station, measured_at (timestamptz), level_cm (integer, above chart datum).",
        cursor.tool(
            "read_file_v2",
            {"targetFile": f"{saltern.path}/schema.sql"},
            {"contents": saltern.files["schema.sql"]},
        ),
    )
    session.think("Shared database couples them. A JSON file written by saltern is enough: nine gauges.")
    session.reply(
        "Not through the database: then every schema change breaks the board. Saltern can write "
        "`levels.json` after each import, one object per gauge with `level_cm` and `measured_at`; "
        "Tideline reads the file and shows nothing when it is older than 30 minutes. An old level is "
        "worse than none."
    )
    session.prompt("Good. The name of the field is level_cm on both sides.")
    session.write("saltern/export.py", saltern_files.EXPORT, repository=saltern)
    session.write("tideline/levels.py", files.LEVELS)
    session.write("tests/test_levels.py", files.LEVELS_TEST)
    session.shell("python -m pytest -q tests/test_levels.py", "..\n2 passed in 0.04s")
    session.reply(
        "Saltern exports, Tideline reads. The page does not show it yet: that waits for the a11y branch, "
        "which changes the same table."
    )
    session.commit_by_hand("Export the latest levels", minutes=5, repository=saltern)
    session.commit_by_hand("Read water levels, unless they are old", minutes=8)


def _store(history: SampleHistory) -> None:
    session = history.claude_session(
        "tideline/sqlite-store",
        "Keep timetables in SQLite",
        utc_time(9, 15, "06:55"),
        version="2.1.254",
        model="claude-opus-5",
    )
    session.transcript.bash_mode(
        "ls -la ~/Downloads/*.csv",
        "-rw-r--r-- 1 robin robin 9388 summer-2026.csv\n-rw-r--r-- 1 robin robin 9412 winter-2026.csv",
    )
    session.prompt(
        "Timetables come as CSV twice a year and corrections by mail in between. I want to keep all "
        "versions and know which one was valid when. SQLite?"
    )
    session.run(
        tool_calls.ask(
            "What should happen to a departure that a correction removes?",
            ["Delete it", "Keep it with valid_until"],
            "Keep it with valid_until",
        )
    )
    session.think("")
    session.reply(
        "Yes, SQLite, one file beside the data. One table `departure(route, leaves_at, valid_from, "
        "valid_until)`; a "
        'correction closes rows and adds new ones, nothing is ever deleted. Then "what did the board say '
        'on 3 August" is a query.'
    )
    session.prompt("Build it. Migration from the two CSVs included.")
    session.run(
        Call(
            "TaskCreate",
            {"subject": "store.py with versions"},
            "Task #1 created successfully",
            {"task": {"id": "1"}},
        )
    )
    session.run(
        Call(
            "TaskCreate",
            {"subject": "Import the CSVs"},
            "Task #2 created successfully",
            {"task": {"id": "2"}},
        )
    )
    session.write("tideline/store.py", files.STORE)
    session.shell(
        "python -m pytest -q tests/test_store.py",
        "ERROR: file or directory not found: tests/test_store.py",
        code=4,
    )
    session.transcript.compact(
        "Summary: Tideline gets a versioned SQLite store. tideline/store.py has open_store, replace_all "
        "and board_at; rows are closed with valid_until, never deleted. Left: tests in "
        "tests/test_store.py, import of summer.csv and winter.csv, commit.",
        trigger="auto",
        preTokens=162_480,
    )
    session.pause(seconds=4)
    session.write("tests/test_store.py", files.STORE_TEST)
    session.queue("use WAL mode, the page reads while I import")
    session.edit(
        "tideline/store.py",
        "    db = sqlite3.connect(path)\n",
        '    db = sqlite3.connect(path)\n    db.execute("pragma journal_mode = wal")\n',
    )
    session.shell("python -m pytest -q", "..........\n10 passed in 0.21s")
    session.reply(
        "The store keeps every version: `replace_all` closes what is no longer in the file, "
        "`board_at(moment)` gives the board of any day. WAL is on, so the page can read during an import."
    )
    session.commit("Keep every version of the timetable in SQLite")
    write_tasks(
        history.claude_root,
        session.transcript,
        [("store.py with versions", "completed"), ("Import the CSVs", "pending")],
    )


def _typo_by_hand(history: SampleHistory) -> None:
    project = history.repositories["tideline"]
    project.put(
        "README.md", project.files["README.md"].replace("A small page and an API", "A page and an API")
    )
    project.commit("Shorten the README", utc_time(9, 20, "18:31"))


def _after_midnight(history: SampleHistory) -> None:
    session = history.cursor_session(
        "tideline/after-midnight", "Times like 25:10", utc_time(10, 6, "14:30"), model="gpt-5.2-codex"
    )
    session.prompt(
        "The winter file has departures at 24:35 and 25:10. fromisoformat chokes: ValueError: Invalid "
        "isoformat string: '2026-11-01T25:10'"
    )
    session.read("tideline/timetable.py")
    session.reply(
        "That is the convention of transit feeds: 25:10 is 01:10 of the next day, but still belongs to "
        "the service day before. I would split off the hour, take it modulo 24 and add the days. The "
        "service day itself is not kept; nothing needs it yet."
    )
    session.edit(
        "tideline/timetable.py",
        "    local = datetime.fromisoformat(text).replace(tzinfo=ZONE, fold=0)\n",
        '    day, _, clock = text.partition("T")\n'
        '    hour, _, minute = clock.partition(":")\n'
        "    # Operators count on after midnight: 25:10 is ten past one, on the ferry of the evening "
        "before.\n"
        "    days, hour_of_day = divmod(int(hour), 24)\n"
        "    naive = datetime.fromisoformat(day) + timedelta(days=days, hours=hour_of_day, "
        "minutes=int(minute))\n"
        "    local = naive.replace(tzinfo=ZONE, fold=0)\n",
    )
    session.edit(
        "tideline/timetable.py",
        "from datetime import UTC, datetime\n",
        "from datetime import UTC, datetime, timedelta\n",
    )
    session.edit(
        "tests/test_timetable.py",
        "def test_an_hour_that_does_not_exist_is_refused() -> None:",
        "def test_a_ferry_after_midnight_belongs_to_the_evening_before() -> None:\n"
        '    assert _time("2026-11-01T25:10") == datetime(2026, 11, 2, 0, 10, tzinfo=UTC)\n\n\n'
        "def test_an_hour_that_does_not_exist_is_refused() -> None:",
    )
    session.shell("python -m pytest -q", "...........\n11 passed in 0.20s")
    session.reply("24:35 and 25:10 are read as 00:35 and 01:10 of the next day.")
    session.commit_by_hand("Read times after midnight such as 25:10", minutes=11)


def _cancellations(history: SampleHistory) -> None:
    session = history.claude_session(
        "tideline/cancellations",
        "Show cancelled departures",
        utc_time(10, 20, "07:40"),
        version="2.1.281",
        model="claude-opus-5",
    )
    session.transcript.command("model", "opus", stdout="Set model to claude-opus-5", as_system=True)
    session.prompt(
        "The live feed has cancellations now. Show them on the board, struck through. First find out what "
        "the feed says."
    )
    session.delegate(
        SubagentTask(
            "Read the feed's documentation",
            "Summarise how the operator's feed v2 announces a cancelled departure.",
            "A departure has `state`: `planned`, `cancelled` or `replaced`; `replaced` names a bus in "
            "`replacement`.",
            [tool_calls.fetch("https://feed.operator.example/docs", "state: planned | cancelled | replaced")],
        ),
        SubagentTask(
            "Look at a day of the feed",
            "In /tmp/feed.jsonl, how often does each state occur?",
            "planned 611, cancelled 14, replaced 3. Every cancelled departure has a `reason`, mostly `wind`.",
            [
                tool_calls.bash(
                    "jq -r .state /tmp/feed.jsonl | sort | uniq -c",
                    "  14 cancelled\n 611 planned\n   3 replaced",
                )
            ],
        ),
    )
    session.think("")
    session.write("tideline/live.py", files.LIVE)
    session.edit(
        "tideline/page.py",
        "from tideline.timetable import parse_departures\n",
        "from tideline.live import State\nfrom tideline.timetable import parse_departures\n",
    )
    session.edit(
        "tideline/page.py",
        'def render(path: Path) -> str:\n    rows = "".join(\n'
        '        f"<tr><td>{one.route}</td><td>{one.leaves_at:%H:%M}</td></tr>" for one in '
        "parse_departures(path)\n"
        "    )\n",
        "def render(path: Path, states: dict[str, State] | None = None) -> str:\n"
        "    known = states or {}\n"
        '    rows = ""\n'
        "    for one in parse_departures(path):\n"
        '        time = f"{one.leaves_at:%H:%M}"\n'
        '        if known.get(f"{one.route} {time}") == "cancelled":\n'
        '            time = f"<s>{time}</s> cancelled"\n'
        '        rows += f"<tr><td>{one.route}</td><td>{time}</td></tr>"\n',
    )
    session.shell("python -m pytest -q", "...........\n11 passed in 0.22s")
    session.reply(
        "Cancelled departures are struck through and say so in words, since a line through text is "
        "invisible to screen readers. `replaced` is parsed but shown as planned: three cases in 628, and "
        "the bus stop is not in the feed."
    )
    session.commit("Show cancelled departures")
    session.transcript.command("cost", stdout="Total cost: $0.94", as_system=True)


def _incident(history: SampleHistory) -> None:
    session = history.claude_session(
        "tideline/503-incident",
        "503 in the night the clocks went back",
        utc_time(11, 4, "08:05"),
        version="2.1.289",
        model="claude-opus-5",
    )
    session.prompt(
        "On 25 October from 00:00 to 01:00 UTC the API answered 503. The log is in /tmp/tideline.log. "
        "What happened?"
    )
    log = [
        f"{88_121 + 3 * n}:2026-10-25T00:{n * 3600 // 417 // 60:02d}:{n * 3600 // 417 % 60:02d}Z"
        " GET /api/departures 503 BoardGuard: next departure is before the last one shown"
        for n in range(417)
    ]
    session.transcript.spill(
        tool_calls.bash("grep -n ' 503 ' /tmp/tideline.log"), "\n".join(log), home=f"{history.home}/.claude"
    )
    session.read("tideline/timetable.py", "tideline/store.py")
    session.think("")
    session.reply(
        "417 requests failed. Not the parser: `board_at` compares local ISO strings, and in the doubled hour "
        '"02:10+01:00" sorts before "02:30+02:00" although it is later. The board went backwards, and the '
        "guard in front of the API answers 503 when it does. Times must be stored in UTC."
    )
    session.prompt("Then store UTC. And how would I have noticed before eleven days had passed?")
    session.edit(
        "tideline/store.py",
        '        db.execute("insert into departure values (?, ?, ?, null)", (one.route, '
        "one.leaves_at.isoformat(), at))\n",
        "        # In UTC: local times of the night the clocks go back do not sort.\n"
        "        leaves = one.leaves_at.astimezone(UTC).isoformat()\n"
        '        db.execute("insert into departure values (?, ?, ?, null)", (one.route, leaves, at))\n',
    )
    session.edit(
        "tideline/store.py", "from datetime import datetime\n", "from datetime import UTC, datetime\n"
    )
    session.shell(
        "python -m pytest -q",
        "....F......\nE   AssertionError: assert [] == ['Skerry']\ntests/test_store.py:15: "
        "AssertionError\n1 failed, 10 passed in 0.25s",
        code=1,
    )
    session.note("The test asks with a local time. `board_at` has to convert its argument as well.")
    session.edit(
        "tideline/store.py",
        "    moment = at.isoformat()\n",
        "    moment = at.astimezone(UTC).isoformat()\n",
    )
    session.shell("python -m pytest -q", "...........\n11 passed in 0.23s")
    session.reply(
        "Fixed. Noticing: there is no alert on the share of 503. That is open, and so is converting the "
        "rows already stored: 1,284 of them still carry local offsets. They only matter on 28 March."
    )
    session.commit_by_hand("Store departures in UTC", minutes=7)
    session.transcript.cost(0.31, model="claude-opus-5", output_tokens=2410)


def _release(history: SampleHistory) -> None:
    session = history.cursor_cli_session(
        "tideline/release-0.4.0",
        "Release notes for 0.4.0",
        utc_time(11, 9, "16:20"),
        model="composer-2",
        stored_in="both",
    )
    session.prompt(
        "write a CHANGELOG.md entry for 0.4.0 from the commits since july, for users, not for developers. "
        "bump the version"
    )
    session.shell(
        "git log --oneline --reverse",
        "\n".join(f"{one.id[:7]} {one.subject}" for one in history.repositories["tideline"].commits),
    )
    session.write("CHANGELOG.md", files.CHANGELOG)
    session.edit("pyproject.toml", 'version = "0.1.0"', 'version = "0.4.0"')
    session.reply(
        "Four entries, newest first. I left out the polling change: users do not see it. The tag v0.4.0 "
        "is not set yet, you wanted to wait for the a11y branch."
    )
    session.commit_by_hand("Release 0.4.0", minutes=3)
