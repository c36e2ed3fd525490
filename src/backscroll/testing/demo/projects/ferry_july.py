"""Tideline, a web service for ferry timetables: July, when it learned what time it is."""

from backscroll.testing.demo.projects import ferry_files as files
from backscroll.testing.demo.story import Story, day

__all__ = ["tell"]


def tell(story: Story) -> None:
    """From the first parser to the nights when the clocks change."""
    _begin_by_hand(story)
    _off_by_two_hours(story)
    _hour_that_comes_twice(story)
    _tests_for_the_change(story)


def _begin_by_hand(story: Story) -> None:
    project = story.repositories["tideline"]
    first = {
        "README.md": files.README,
        "pyproject.toml": files.PROJECT,
        "tideline/__init__.py": "",
        "data/summer.csv": files.CSV,
    }
    first |= {"tideline/timetable.py": files.TIMETABLE, "tideline/page.py": files.PAGE}
    for path, text in (first | {"tests/test_timetable.py": files.TEST}).items():
        project.put(path, text)
    project.commit("Start with a timetable parser and a page", day(7, 6, "17:20"))


def _off_by_two_hours(story: Story) -> None:
    scene = story.claude(
        "tideline/off-by-two-hours",
        "Departures two hours late on the board",
        day(7, 8, "08:12"),
        version="2.1.224",
        model="claude-opus-4-8",
    )
    scene.say(
        "The board says the North Sound ferry leaves at 09:40. It left at 07:40 while I stood on the "
        "quay. Why is everything two hours late?"
    )
    scene.think("Two hours in July smells of UTC against summer time. Look at how times are parsed.")
    scene.grep(
        "tzinfo|fromisoformat",
        "tideline/timetable.py:24:    return datetime.fromisoformat(text).replace(tzinfo=UTC)",
    )
    scene.read("tideline/timetable.py", "data/summer.csv")
    scene.note(
        "The CSV holds local wall-clock times, and `_time` stamps them as UTC. First a test that shows it."
    )
    scene.edit(
        "tests/test_timetable.py",
        "from pathlib import Path\n\nfrom tideline.timetable import parse_departures\n",
        "from datetime import UTC, datetime\nfrom pathlib import Path\n\n"
        "from tideline.timetable import parse_departures\n",
    )
    scene.edit(
        "tests/test_timetable.py",
        '["North Sound", "Skerry"]\n',
        '["North Sound", "Skerry"]\n\n\n'
        "def test_times_are_the_wall_clock_of_the_quay(tmp_path: Path) -> None:\n"
        '    file = tmp_path / "summer.csv"\n'
        '    file.write_text("route,leaves\\nNorth Sound,2026-07-06T07:40\\n")\n'
        "    (only,) = parse_departures(file)\n"
        "    assert only.leaves_at == datetime(2026, 7, 6, 5, 40, tzinfo=UTC)\n",
    )
    scene.shell(
        "python -m pytest -q",
        "F.\n=================================== FAILURES ===================================\n"
        "E   AssertionError: assert datetime.datetime(2026, 7, 6, 7, 40, tzinfo=datetime.timezone.utc) == "
        "datetime.datetime(2026, 7, 6, 5, 40, tzinfo=datetime.timezone.utc)\n"
        "1 failed, 1 passed in 0.09s",
        code=1,
    )
    scene.edit("tideline/timetable.py", "from datetime import UTC, datetime\nfrom pathlib import Path\n",
               "from datetime import datetime\nfrom pathlib import Path\nfrom zoneinfo import ZoneInfo\n\n"
               '# The operator prints local times and says nowhere which zone that is; it is the quay\'s.\n'
               'ZONE = ZoneInfo("Europe/Oslo")\n')  # fmt: skip
    scene.edit("tideline/timetable.py", "replace(tzinfo=UTC)", "replace(tzinfo=ZONE)")
    scene.shell("python -m pytest -q", "..\n2 passed in 0.07s")
    scene.reply(
        "The CSV has local times; `_time` declared them UTC, so the page showed 07:40 as 09:40 after "
        "converting. "
        '`_time` now uses `ZoneInfo("Europe/Oslo")`. I did not make the zone a setting: all three routes '
        "leave from the same quay, and a setting nobody changes is one more thing to get wrong."
    )
    scene.say("Good. Commit it, and remind me: what about the night the clocks go back?")
    scene.commit("Read timetable times as local time")
    scene.reply(
        "Committed. The night of 25 October is still open: 02:30 happens twice, and nothing decides which "
        "one is meant. `fold` is the place to look."
    )


def _hour_that_comes_twice(story: Story) -> None:
    scene = story.editor(
        "tideline/doubled-hour",
        "The hour that comes twice in October",
        day(7, 10, "13:05"),
        model="claude-4.6-sonnet-thinking",
    )
    scene.say(
        "On 25 October 02:30 exists twice. Which one should a departure at 02:30 mean, and what about "
        "02:30 on 29 March, which does not exist at all?",
        files=["tideline/timetable.py"],
    )
    scene.think("fold=0 is the first pass. For the gap: round trip through UTC and compare.")
    scene.read("tideline/timetable.py")
    scene.reply(
        "For the doubled hour I suggest the first pass (`fold=0`): the operator's printed table lists the "
        "night "
        'ferry once, and its note says it leaves "before the change". For the missing hour: refuse the '
        "file. A departure that cannot happen is a typing error on their side, and a silent shift would "
        "hide it."
    )
    scene.say("Agreed on both. Name the error TimetableError and say which line.")
    scene.edit(
        "tideline/timetable.py",
        "@dataclass(frozen=True)\nclass Departure:",
        'class TimetableError(ValueError):\n    """A timetable says something that cannot be."""\n\n\n'
        "@dataclass(frozen=True)\nclass Departure:",
    )
    scene.edit(
        "tideline/timetable.py",
        "    return datetime.fromisoformat(text).replace(tzinfo=ZONE)\n",
        "    # Of the hour that comes twice the first pass is meant: the operator's night ferry leaves "
        "before the change.\n"
        "    local = datetime.fromisoformat(text).replace(tzinfo=ZONE, fold=0)\n"
        "    if local.astimezone(UTC).astimezone(ZONE).replace(tzinfo=None) != local.replace(tzinfo=None):\n"
        '        raise TimetableError(f"{text} does not exist: the clocks skip it")\n'
        "    return local\n",
    )
    scene.edit(
        "tideline/timetable.py", "from datetime import datetime\n", "from datetime import UTC, datetime\n"
    )
    scene.shell("python -m pytest -q", "..\n2 passed in 0.08s")
    scene.reply(
        "Done, without tests so far. The message names the time, not the line: `_time` does not know the "
        "line, and passing it through would touch three signatures. Not committed."
    )


def _tests_for_the_change(story: Story) -> None:
    scene = story.claude(
        "tideline/clock-change-tests",
        "Tests for the clock change",
        day(7, 13, "07:31"),
        version="2.1.226",
        model="claude-sonnet-5",
    )
    scene.transcript.command("model", "sonnet", stdout="Set model to claude-sonnet-5", as_system=True)
    scene.say(
        "There are uncommitted changes in timetable.py about TimetableError. Write the tests, both nights."
    )
    scene.shell(
        "git diff --stat",
        " tideline/timetable.py | 13 +++++++++++--\n 1 file changed, 11 insertions(+), 2 deletions(-)",
    )
    scene.edit(
        "tests/test_timetable.py",
        "from datetime import UTC, datetime\nfrom pathlib import Path\n\nfrom tideline.timetable import "
        "parse_departures\n",
        "from datetime import UTC, datetime\nfrom pathlib import Path\n\nimport pytest\n\n"
        "from tideline.timetable import TimetableError, _time, parse_departures\n",
    )
    scene.edit(
        "tests/test_timetable.py",
        "    assert only.leaves_at == datetime(2026, 7, 6, 5, 40, tzinfo=UTC)\n",
        "    assert only.leaves_at == datetime(2026, 7, 6, 5, 40, tzinfo=UTC)\n\n\n"
        "def test_of_the_hour_that_comes_twice_the_first_is_meant() -> None:\n"
        '    assert _time("2026-10-25T02:30") == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)\n\n\n'
        "def test_an_hour_that_does_not_exist_is_refused() -> None:\n"
        '    with pytest.raises(TimetableError, match="2026-03-29T02:30 does not exist"):\n'
        '        _time("2026-03-29T02:30")\n',
    )
    scene.shell(
        "python -m pytest -q",
        "..F.\nE   AssertionError: assert datetime.datetime(2026, 10, 25, 2, 30, "
        "tzinfo=zoneinfo.ZoneInfo(key='Europe/Oslo')) == datetime.datetime(2026, 10, 25, 0, 30, "
        "tzinfo=datetime.timezone.utc)\n"
        "1 failed, 3 passed in 0.12s",
        code=1,
    )
    scene.think(
        "PEP 495: a time in a repeated hour equals no time of another zone. Convert before comparing."
    )
    scene.edit(
        "tests/test_timetable.py",
        '    assert _time("2026-10-25T02:30") == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)\n',
        "    # Across zones Python never calls a time of this hour equal to another (PEP 495).\n"
        '    assert _time("2026-10-25T02:30").astimezone(UTC) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)\n',
    )
    scene.shell("python -m pytest -q", "....\n4 passed in 0.10s")
    scene.reply(
        "Both nights are covered, four tests pass. The first attempt failed for a reason worth knowing: "
        "by PEP 495 a time in the doubled hour equals no time of another zone, so the test converts to "
        "UTC first. You can commit parser and tests together."
    )
    scene.later("Decide which hour is meant when the clocks change", minutes=9)
