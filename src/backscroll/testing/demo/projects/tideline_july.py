"""Tideline, a web service for ferry timetables: July, with time zones."""

from backscroll.testing.demo.projects import tideline_files as files
from backscroll.testing.demo.sample_history import SampleHistory, utc_time


def add_sessions(history: SampleHistory) -> None:
    """Add the sessions from the first parser to the tests of the clock change."""
    _begin_by_hand(history)
    _off_by_two_hours(history)
    _hour_that_comes_twice(history)
    _tests_for_the_change(history)


def _begin_by_hand(history: SampleHistory) -> None:
    project = history.repositories["tideline"]
    first = {
        "README.md": files.README,
        "pyproject.toml": files.PROJECT,
        "tideline/__init__.py": "",
        "data/summer.csv": files.CSV,
    }
    first |= {"tideline/timetable.py": files.TIMETABLE, "tideline/page.py": files.PAGE}
    for path, text in (first | {"tests/test_timetable.py": files.TEST}).items():
        project.put(path, text)
    project.commit("Start with a timetable parser and a page", utc_time(7, 6, "17:20"))


def _off_by_two_hours(history: SampleHistory) -> None:
    session = history.claude_session(
        "tideline/off-by-two-hours",
        "Departures two hours late on the board",
        utc_time(7, 8, "08:12"),
        version="2.1.224",
        model="claude-opus-4-8",
    )
    session.prompt(
        "The board says the North Sound ferry leaves at 09:40. It left at 07:40 while I stood on the "
        "quay. Why is everything two hours late?"
    )
    session.think("Two hours in July smells of UTC against summer time. Look at how times are parsed.")
    session.grep(
        "tzinfo|fromisoformat",
        "tideline/timetable.py:24:    return datetime.fromisoformat(text).replace(tzinfo=UTC)",
    )
    session.read("tideline/timetable.py", "data/summer.csv")
    session.note(
        "The CSV holds local wall-clock times, and `_time` stamps them as UTC. First a test that shows it."
    )
    session.edit(
        "tests/test_timetable.py",
        "from pathlib import Path\n\nfrom tideline.timetable import parse_departures\n",
        "from datetime import UTC, datetime\nfrom pathlib import Path\n\n"
        "from tideline.timetable import parse_departures\n",
    )
    session.edit(
        "tests/test_timetable.py",
        '["North Sound", "Skerry"]\n',
        '["North Sound", "Skerry"]\n\n\n'
        "def test_times_are_the_wall_clock_of_the_quay(tmp_path: Path) -> None:\n"
        '    file = tmp_path / "summer.csv"\n'
        '    file.write_text("route,leaves\\nNorth Sound,2026-07-06T07:40\\n")\n'
        "    (only,) = parse_departures(file)\n"
        "    assert only.leaves_at == datetime(2026, 7, 6, 5, 40, tzinfo=UTC)\n",
    )
    session.shell(
        "python -m pytest -q",
        "F.\n=================================== FAILURES ===================================\n"
        "E   AssertionError: assert datetime.datetime(2026, 7, 6, 7, 40, tzinfo=datetime.timezone.utc) == "
        "datetime.datetime(2026, 7, 6, 5, 40, tzinfo=datetime.timezone.utc)\n"
        "1 failed, 1 passed in 0.09s",
        code=1,
    )
    session.edit("tideline/timetable.py", "from datetime import UTC, datetime\nfrom pathlib import Path\n",
               "from datetime import datetime\nfrom pathlib import Path\nfrom zoneinfo import ZoneInfo\n\n"
               '# The operator prints local times and says nowhere which zone that is; it is the quay\'s.\n'
               'ZONE = ZoneInfo("Europe/Oslo")\n')  # fmt: skip
    session.edit("tideline/timetable.py", "replace(tzinfo=UTC)", "replace(tzinfo=ZONE)")
    session.shell("python -m pytest -q", "..\n2 passed in 0.07s")
    session.reply(
        "The CSV has local times; `_time` declared them UTC, so the page showed 07:40 as 09:40 after "
        "converting. "
        '`_time` now uses `ZoneInfo("Europe/Oslo")`. I did not make the zone a setting: all three routes '
        "leave from the same quay, and a setting nobody changes is one more thing to get wrong."
    )
    session.prompt("Good. Commit it, and remind me: what about the night the clocks go back?")
    session.commit("Read timetable times as local time")
    session.reply(
        "Committed. The night of 25 October is still open: 02:30 happens twice, and nothing decides which "
        "one is meant. `fold` is the place to look."
    )


def _hour_that_comes_twice(history: SampleHistory) -> None:
    session = history.cursor_session(
        "tideline/doubled-hour",
        "The hour that comes twice in October",
        utc_time(7, 10, "13:05"),
        model="claude-4.6-sonnet-thinking",
    )
    session.prompt(
        "On 25 October 02:30 exists twice. Which one should a departure at 02:30 mean, and what about "
        "02:30 on 29 March, which does not exist at all?",
        files=["tideline/timetable.py"],
    )
    session.think("fold=0 is the first pass. For the gap: round trip through UTC and compare.")
    session.read("tideline/timetable.py")
    session.reply(
        "For the doubled hour I suggest the first pass (`fold=0`): the operator's printed table lists the "
        "night "
        'ferry once, and its note says it leaves "before the change". For the missing hour: refuse the '
        "file. A departure that cannot happen is a typing error on their side, and a silent shift would "
        "hide it."
    )
    session.prompt("Agreed on both. Name the error TimetableError and say which line.")
    session.edit(
        "tideline/timetable.py",
        "@dataclass(frozen=True)\nclass Departure:",
        'class TimetableError(ValueError):\n    """A timetable says something that cannot be."""\n\n\n'
        "@dataclass(frozen=True)\nclass Departure:",
    )
    session.edit(
        "tideline/timetable.py",
        "    return datetime.fromisoformat(text).replace(tzinfo=ZONE)\n",
        "    # Of the hour that comes twice the first pass is meant: the operator's night ferry leaves "
        "before the change.\n"
        "    local = datetime.fromisoformat(text).replace(tzinfo=ZONE, fold=0)\n"
        "    if local.astimezone(UTC).astimezone(ZONE).replace(tzinfo=None) != local.replace(tzinfo=None):\n"
        '        raise TimetableError(f"{text} does not exist: the clocks skip it")\n'
        "    return local\n",
    )
    session.edit(
        "tideline/timetable.py", "from datetime import datetime\n", "from datetime import UTC, datetime\n"
    )
    session.shell("python -m pytest -q", "..\n2 passed in 0.08s")
    session.reply(
        "Done, without tests so far. The message names the time, not the line: `_time` does not know the "
        "line, and passing it through would touch three signatures. Not committed."
    )


def _tests_for_the_change(history: SampleHistory) -> None:
    session = history.claude_session(
        "tideline/clock-change-tests",
        "Tests for the clock change",
        utc_time(7, 13, "07:31"),
        version="2.1.226",
        model="claude-sonnet-5",
    )
    session.transcript.command("model", "sonnet", stdout="Set model to claude-sonnet-5", as_system=True)
    session.prompt(
        "There are uncommitted changes in timetable.py about TimetableError. Write the tests, both nights."
    )
    session.shell(
        "git diff --stat",
        " tideline/timetable.py | 13 +++++++++++--\n 1 file changed, 11 insertions(+), 2 deletions(-)",
    )
    session.edit(
        "tests/test_timetable.py",
        "from datetime import UTC, datetime\nfrom pathlib import Path\n\nfrom tideline.timetable import "
        "parse_departures\n",
        "from datetime import UTC, datetime\nfrom pathlib import Path\n\nimport pytest\n\n"
        "from tideline.timetable import TimetableError, _time, parse_departures\n",
    )
    session.edit(
        "tests/test_timetable.py",
        "    assert only.leaves_at == datetime(2026, 7, 6, 5, 40, tzinfo=UTC)\n",
        "    assert only.leaves_at == datetime(2026, 7, 6, 5, 40, tzinfo=UTC)\n\n\n"
        "def test_of_the_hour_that_comes_twice_the_first_is_meant() -> None:\n"
        '    assert _time("2026-10-25T02:30") == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)\n\n\n'
        "def test_an_hour_that_does_not_exist_is_refused() -> None:\n"
        '    with pytest.raises(TimetableError, match="2026-03-29T02:30 does not exist"):\n'
        '        _time("2026-03-29T02:30")\n',
    )
    session.shell(
        "python -m pytest -q",
        "..F.\nE   AssertionError: assert datetime.datetime(2026, 10, 25, 2, 30, "
        "tzinfo=zoneinfo.ZoneInfo(key='Europe/Oslo')) == datetime.datetime(2026, 10, 25, 0, 30, "
        "tzinfo=datetime.timezone.utc)\n"
        "1 failed, 3 passed in 0.12s",
        code=1,
    )
    session.think(
        "PEP 495: a time in a repeated hour equals no time of another zone. Convert before comparing."
    )
    session.edit(
        "tests/test_timetable.py",
        '    assert _time("2026-10-25T02:30") == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)\n',
        "    # Across zones Python never calls a time of this hour equal to another (PEP 495).\n"
        '    assert _time("2026-10-25T02:30").astimezone(UTC) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)\n',
    )
    session.shell("python -m pytest -q", "....\n4 passed in 0.10s")
    session.reply(
        "Both nights are covered, four tests pass. The first attempt failed for a reason worth knowing: "
        "by PEP 495 a time in the doubled hour equals no time of another zone, so the test converts to "
        "UTC first. You can commit parser and tests together."
    )
    session.commit_by_hand("Decide which hour is meant when the clocks change", minutes=9)
