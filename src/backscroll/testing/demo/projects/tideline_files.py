"""Complete files that Tideline's sessions write."""

README = """\
# Tideline

When does the next ferry leave? A small page and an API over the operator's timetable.

    python -m tideline.page data/summer.csv
"""

PROJECT = """\
[project]
name = "tideline"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = []
"""

TIMETABLE = '''\
"""Departures from the operator's CSV."""

import csv
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path


@dataclass(frozen=True)
class Departure:
    route: str
    leaves_at: datetime


def parse_departures(path: Path) -> list[Departure]:
    """Every departure of a timetable file, in the file's order."""
    with path.open(newline="") as file:
        return [Departure(row["route"], _time(row["leaves"])) for row in csv.DictReader(file)]


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def next_departure(departures: list[Departure], now: datetime) -> Departure | None:
    """The first departure that has not left yet."""
    later = [one for one in departures if one.leaves_at > now]
    return min(later, key=lambda one: one.leaves_at, default=None)
'''

PAGE = '''\
"""The departures board as a page."""

import sys
from pathlib import Path

from tideline.timetable import parse_departures


def render(path: Path) -> str:
    rows = "".join(
        f"<tr><td>{one.route}</td><td>{one.leaves_at:%H:%M}</td></tr>" for one in parse_departures(path)
    )
    return f"<table>{rows}</table>"


if __name__ == "__main__":
    print(render(Path(sys.argv[1])))
'''

TEST = """\
from pathlib import Path

from tideline.timetable import parse_departures


def test_every_row_is_a_departure(tmp_path: Path) -> None:
    file = tmp_path / "summer.csv"
    file.write_text("route,leaves\\nNorth Sound,2026-07-06T07:40\\nSkerry,2026-07-06T08:05\\n")
    assert [one.route for one in parse_departures(file)] == ["North Sound", "Skerry"]
"""

CSV = """\
route,leaves
North Sound,2026-07-06T07:40
Skerry,2026-07-06T08:05
North Sound,2026-07-06T12:10
Outer Holm,2026-07-06T23:50
"""

API = '''\
"""``/api/departures``: the board for other programs."""

import hashlib
import json
from collections.abc import Sequence

from tideline.timetable import Departure


def etag(departures: Sequence[Departure]) -> str:
    """Changes exactly when an answer would."""
    told = "\\n".join(f"{one.route} {one.leaves_at.isoformat()}" for one in departures)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def answer(departures: Sequence[Departure], known: str | None = None) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body; 304 when the caller already has this board."""
    tag = etag(departures)
    if known == tag:
        return 304, {"ETag": tag}, b""
    rows = [{"route": one.route, "leaves_at": one.leaves_at.isoformat()} for one in departures]
    return 200, {"ETag": tag, "Content-Type": "application/json"}, json.dumps({"departures": rows}).encode()
'''

POLL = '''\
"""Fetch the operator's feed, no more often than it allows."""

import random
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

# The operator allows 60 requests an hour and key; 90 seconds makes 40, which leaves room for restarts.
POLL_SECONDS = 90
JITTER_SECONDS = 10


def pause() -> float:
    """Seconds until the next request, never the same for two instances."""
    return POLL_SECONDS + random.uniform(0, JITTER_SECONDS)


def feed(url: str) -> Iterator[bytes]:
    """The feed, again and again; an answer of 429 is waited out as long as it asks."""
    while True:
        try:
            with urllib.request.urlopen(url, timeout=20) as response:
                yield response.read()
        except urllib.error.HTTPError as error:
            if error.code != 429:
                raise
            time.sleep(float(error.headers.get("Retry-After", POLL_SECONDS)))
            continue
        time.sleep(pause())
'''

PLAN = """\
# /api/departures

1. A pure function `answer(departures, known)` in `tideline/api.py`; no framework.
2. ETag = SHA-256 over route and time of every departure, so that a poller gets 304 until the board changes.
3. Times with their offset, never bare local times.
4. Not now: pagination. The longest board has 214 rows, 19 KB.
"""

LEVELS = '''\
"""Water levels, from the file that Saltern writes."""

import json
from datetime import datetime, timedelta
from pathlib import Path

# An old level is worse than none: skippers would trust it.
OLDEST = timedelta(minutes=30)


def levels(path: Path, now: datetime) -> dict[str, int]:
    """Centimetres above chart datum by gauge, without those that are too old."""
    known = json.loads(path.read_text()) if path.exists() else {}
    return {
        gauge: one["level_cm"]
        for gauge, one in known.items()
        if now - datetime.fromisoformat(one["measured_at"]) <= OLDEST
    }
'''

LEVELS_TEST = """\
import json
from datetime import UTC, datetime
from pathlib import Path

from tideline.levels import levels

NOW = datetime(2026, 9, 2, 10, tzinfo=UTC)


def test_a_fresh_level_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "levels.json"
    file.write_text(json.dumps({"BRN-4": {"measured_at": "2026-09-02T09:50:00+00:00", "level_cm": 141}}))
    assert levels(file, NOW) == {"BRN-4": 141}


def test_an_old_level_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "levels.json"
    file.write_text(json.dumps({"BRN-4": {"measured_at": "2026-09-02T09:20:00+00:00", "level_cm": 141}}))
    assert levels(file, NOW) == {}
"""

STORE = '''\
"""Every version of the timetable, in SQLite: rows are closed, never deleted."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from tideline.timetable import Departure

SCHEMA = """
create table if not exists departure (
    route text not null,
    leaves_at text not null,
    valid_from text not null,
    valid_until text
)
"""


def open_store(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path)
    db.execute(SCHEMA)
    return db


def replace_all(db: sqlite3.Connection, departures: Sequence[Departure], at: str) -> None:
    """From this moment on the timetable is this one."""
    db.execute("update departure set valid_until = ? where valid_until is null", (at,))
    for one in departures:
        db.execute("insert into departure values (?, ?, ?, null)", (one.route, one.leaves_at.isoformat(), at))
    db.commit()


def board_at(db: sqlite3.Connection, at: datetime) -> list[tuple[str, str]]:
    """What the board said at a moment: routes and times still to come."""
    moment = at.isoformat()
    return db.execute(
        "select route, leaves_at from departure where leaves_at > ? and valid_from <= ?"
        " and (valid_until is null or valid_until > ?) order by leaves_at",
        (moment, moment, moment),
    ).fetchall()
'''

STORE_TEST = """\
from datetime import datetime
from pathlib import Path

from tideline.store import board_at, open_store, replace_all
from tideline.timetable import ZONE, Departure

MORNING = datetime(2026, 8, 3, 7, 0, tzinfo=ZONE)
SKERRY = Departure("Skerry", datetime(2026, 8, 3, 8, 5, tzinfo=ZONE))


def test_a_correction_changes_no_earlier_board(tmp_path: Path) -> None:
    db = open_store(tmp_path / "timetable.db")
    replace_all(db, [SKERRY], "2026-08-01T00:00:00")
    replace_all(db, [], "2026-08-04T00:00:00")
    assert [route for route, _ in board_at(db, MORNING)] == ["Skerry"]


def test_a_removed_departure_is_not_on_the_new_board(tmp_path: Path) -> None:
    db = open_store(tmp_path / "timetable.db")
    replace_all(db, [SKERRY], "2026-07-01T00:00:00")
    replace_all(db, [], "2026-07-02T00:00:00")
    assert board_at(db, MORNING) == []
"""

LIVE = '''\
"""What the live feed says about a departure."""

import json
from collections.abc import Iterable
from typing import Literal, get_args

State = Literal["planned", "cancelled", "replaced"]


def states(lines: Iterable[str]) -> dict[str, State]:
    """The state of every departure by route and time; one that nobody knows counts as planned."""
    known: dict[str, State] = {}
    for line in lines:
        told = json.loads(line)
        state = told.get("state")
        known[f"{told['route']} {told['leaves']}"] = state if state in get_args(State) else "planned"
    return known
'''

CHANGELOG = """\
# Changes

## 0.4.0

- Cancelled departures are struck through, and say so.
- Departures after midnight (24:35, 25:10) are on the board.
- The night the clocks go back no longer breaks the API.
- `/api/departures` for your own programs.
"""
