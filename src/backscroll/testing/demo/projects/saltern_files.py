"""Complete files that Saltern's sessions write."""

README = """\
# Saltern

Imports readings of tide gauges into PostgreSQL.

    python -m saltern.importer readings.csv
"""

SCHEMA = """\
create table reading (
    station text not null,
    measured_at timestamptz not null,
    level_cm integer not null
);
"""

IMPORTER = '''\
"""Readings of tide gauges, from CSV into PostgreSQL."""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from saltern.stations import offset_cm


class Reading(NamedTuple):
    station: str
    measured_at: str
    level_cm: int


def readings(path: Path) -> Iterator[Reading]:
    """Every reading of a file, levels above chart datum."""
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            raw = round(float(row["level_m"]) * 100)
            yield Reading(row["station"], row["measured_at"], raw + offset_cm(row["station"]))


def store(connection, rows) -> int:
    """Insert readings one by one. Returns how many."""
    count = 0
    with connection.cursor() as cursor:
        for row in rows:
            cursor.execute("insert into reading values (%s, %s, %s)", row)
            count += 1
    connection.commit()
    return count


if __name__ == "__main__":
    import psycopg

    with psycopg.connect("") as db:
        print(store(db, readings(Path(sys.argv[1]))))
'''

STATIONS = '''\
"""What is known about a gauge."""

import json
import urllib.request

API = "https://gauges.example/v1/stations/"


def station(name: str) -> dict[str, object]:
    """Ask the authority about one gauge; takes about 800 ms."""
    with urllib.request.urlopen(API + name, timeout=30) as response:
        return json.load(response)


def offset_cm(name: str) -> int:
    """What to add to a raw level to get the level above chart datum."""
    return int(str(station(name)["datum_offset_cm"]))
'''

CACHE = '''\
"""Station records in Redis, so that the authority is asked once an hour and gauge."""

import json
import os
from collections.abc import Callable

import redis

TTL_SECONDS = 3600

_client = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://localhost:6379/0"))


def cached(name: str, ask: Callable[[str], dict[str, object]]) -> dict[str, object]:
    """A station's record from the cache, else from ``ask``."""
    key = f"saltern:station:{name}"
    known = _client.get(key)
    if known is not None:
        return json.loads(known)
    record = ask(name)
    _client.set(key, json.dumps(record))
    return record
'''

COMPOSE = """\
services:
  postgres:
    image: postgres:17
  redis:
    image: redis:7
    command: redis-server --maxmemory 64mb --maxmemory-policy noeviction
"""

TEST = """\
from pathlib import Path

from saltern import importer


def test_levels_are_whole_centimetres(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(importer, "offset_cm", lambda name: 14)
    file = tmp_path / "readings.csv"
    file.write_text("station,measured_at,level_m\\nBRN-4,2026-07-09T06:00Z,1.27\\n")
    assert [row.level_cm for row in importer.readings(file)] == [141]
"""

EXPORT = '''\
"""The latest level of every gauge, for whoever wants to show it."""

import json

LATEST = """
    select distinct on (station) station, measured_at, level_cm
    from reading
    order by station, measured_at desc
"""


def latest(connection) -> str:
    """One JSON object per gauge, by its name: ``measured_at`` and ``level_cm``."""
    with connection.cursor() as cursor:
        rows = cursor.execute(LATEST).fetchall()
    return json.dumps({name: {"measured_at": at.isoformat(), "level_cm": level} for name, at, level in rows})
'''

BACKFILL = '''\
"""Import the authority's yearly archives, one year at a time."""

import sys
from pathlib import Path

import psycopg

from saltern.importer import readings, store

FIRST, LAST = 2019, 2025


def backfill(folder: Path) -> dict[int, int]:
    """Readings imported per year; a year whose file is missing counts as none."""
    counts: dict[int, int] = {}
    with psycopg.connect("") as db:
        for year in range(FIRST, LAST + 1):
            file = folder / f"{year}.csv"
            counts[year] = store(db, readings(file)) if file.exists() else 0
    return counts


if __name__ == "__main__":
    for year, count in backfill(Path(sys.argv[1])).items():
        print(year, count)
'''
