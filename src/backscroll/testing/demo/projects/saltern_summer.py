"""Saltern, an importer of tide gauge readings: July and August, with a Redis cache that was removed again."""

from backscroll.testing import cursor
from backscroll.testing.claude_code import resume, tool_calls
from backscroll.testing.demo.claude_session import SubagentTask
from backscroll.testing.demo.projects import saltern_files as files
from backscroll.testing.demo.sample_history import SampleHistory, utc_time


def add_sessions(history: SampleHistory) -> None:
    """Add the sessions from the first import to upserts."""
    _first_import(history)
    _add_cache(history)
    _memory_on_the_server(history)
    _drop_cache(history)
    _clean_up_after_cache(history)
    _duplicates(history)


def _first_import(history: SampleHistory) -> None:
    session = history.cursor_session(
        "saltern/first-import",
        "Import gauge readings",
        utc_time(7, 9, "07:50"),
        model="claude-4.6-sonnet-thinking",
    )
    session.prompt(
        "New project: read tide gauge CSVs (station, measured_at, level_m) into PostgreSQL. Levels in "
        "whole centimetres above chart datum; the datum offset of a gauge comes from the authority's API."
    )
    session.think("Integers in centimetres avoid float comparisons. Offset per station from the API.")
    session.todo(("schema", "in_progress"), ("importer", "pending"), ("test", "pending"))
    session.write("schema.sql", files.SCHEMA)
    session.write("saltern/__init__.py", '"""Readings of tide gauges."""\n')
    session.write("saltern/stations.py", files.STATIONS)
    session.write("saltern/importer.py", files.IMPORTER)
    session.write("tests/test_importer.py", files.TEST)
    session.write("README.md", files.README)
    session.shell("python -m pytest -q", ".\n1 passed in 0.05s")
    session.todo(("schema", "completed"), ("importer", "completed"), ("test", "completed"))
    session.reply(
        "`python -m saltern.importer readings.csv` inserts every reading. Levels are integers in "
        "centimetres, so 1.27 m at BRN-4 with an offset of 14 becomes 141. The API is asked once per row "
        "for now."
    )
    session.commit_by_hand("Import gauge readings", minutes=14)


def _add_cache(history: SampleHistory) -> None:
    session = history.claude_session(
        "saltern/add-redis",
        "Cache station records in Redis",
        utc_time(7, 15, "14:20"),
        version="1.0.98",
        model="claude-sonnet-4-20250514",
    )
    session.transcript.command("model", "sonnet", stdout="Set model to sonnet")
    session.prompt("Importing one day takes 40 minutes. Profile it and make it fast.")
    session.shell(
        "python -m cProfile -s cumtime -m saltern.importer day.csv | head -6",
        "   2951 function calls in 2410.552 seconds\n   ncalls  cumtime  filename:lineno(function)\n"
        "     2880 2398.101 stations.py:9(station)",
    )
    session.delegate(
        SubagentTask(
            "Measure the stations API",
            "How long does one call of station() take, and does the API offer a bulk endpoint?",
            "Median 812 ms over 20 calls. There is no bulk endpoint; /v1/stations lists names only.",
            [tool_calls.bash("python -m timeit -n 20 ...", "20 loops, best of 5: 812 msec per loop")],
            kind="general-purpose",
            model="claude-sonnet-4-20250514",
        )
    )
    session.reply(
        "99.5 % of the time is `station()`: 2,880 calls of 800 ms. Every row asks again. I would put the "
        "records into Redis, which the server already runs for the job queue, keyed by gauge."
    )
    session.prompt("Yes, Redis. Several import jobs run at once, so they should share it.")
    session.write("saltern/cache.py", files.CACHE)
    session.edit(
        "saltern/stations.py",
        'int(str(station(name)["datum_offset_cm"]))',
        'int(str(cached(name, station)["datum_offset_cm"]))',
    )
    session.edit(
        "saltern/stations.py",
        "import urllib.request\n\nAPI",
        "import urllib.request\n\nfrom saltern.cache import cached\n\nAPI",
    )
    session.write("docker-compose.yml", files.COMPOSE)
    session.shell("time python -m saltern.importer day.csv", "2880\n\nreal\t0m19.402s")
    session.reply("One day now takes 19 seconds instead of 40 minutes; 9 gauges mean 9 calls.")
    session.commit("Cache station records in Redis")

    copy = resume(session.transcript, seed=3)
    again = history.claude_session(
        "saltern/redis-ttl",
        "Let cached stations expire",
        copy.now,
        version="1.0.98",
        model="claude-sonnet-4-20250514",
        transcript=copy,
    )
    again.prompt("TTL_SECONDS is never used, the keys live for ever. Fix that.")
    again.edit(
        "saltern/cache.py",
        "    _client.set(key, json.dumps(record))\n",
        "    _client.set(key, json.dumps(record), ex=TTL_SECONDS)\n",
    )
    again.reply("Records now expire after an hour (`ex=3600`).")
    again.commit_by_hand("Let cached stations expire after an hour", minutes=3)


def _memory_on_the_server(history: SampleHistory) -> None:
    session = history.cursor_session(
        "saltern/redis-memory",
        "Redis out of memory on gauge-box",
        utc_time(7, 27, "05:58"),
        model="claude-4.6-sonnet-thinking",
        workspace=cursor.ssh_folder("gauge-box", "/srv/saltern"),
    )
    session.prompt(
        "Nightly import on this machine died. Log says OOM command not allowed. Find out what fills Redis."
    )
    session.shell(
        "journalctl -u saltern-import -n 3 --no-pager",
        "redis.exceptions.OutOfMemoryError: OOM command not allowed when used memory > 'maxmemory'.\n"
        "saltern-import.service: Main process exited, code=exited, status=1/FAILURE",
    )
    session.shell("redis-cli info keyspace", "# Keyspace\ndb0:keys=412377,expires=9,avg_ttl=1804133")
    session.shell(
        "redis-cli --scan --count 1000 | cut -d: -f1,2 | sort | uniq -c",
        " 412368 rq:job\n      9 saltern:station",
    )
    session.reply(
        "Not ours: 412,368 of 412,377 keys are finished jobs of the queue (`rq:job`), kept without "
        "expiry. Our nine station keys are fine, but `noeviction` with 64 MB makes every write fail once "
        "the queue has filled it."
    )
    session.prompt("Then flush the finished jobs and give the queue its own database.")
    session.shell("rq empty-finished --all && redis-cli dbsize", "412368 finished jobs removed\n(integer) 9")
    session.shell("sudo systemctl restart saltern-import && systemctl is-active saltern-import", "active")
    session.reply(
        "Removed and running again. The queue now uses db 1. Open: `result_ttl` of the queue is still "
        "unlimited; someone should set it to a day, or this comes back in about five weeks."
    )


def _drop_cache(history: SampleHistory) -> None:
    session = history.claude_session(
        "saltern/drop-redis",
        "Wrong levels at BRN-4 after recalibration",
        utc_time(8, 11, "06:40"),
        version="2.1.234",
        model="claude-opus-4-8",
    )
    session.prompt(
        "BRN-4 was recalibrated yesterday at 13:00, datum offset from 14 to 0. For an hour afterwards "
        "every level we stored is 14 cm too high. How can that be?"
    )
    session.think("An hour: TTL_SECONDS = 3600. Stale offset from the cache.")
    session.read("saltern/cache.py", "saltern/stations.py")
    session.shell(
        "psql -c \"select count(*) from reading where station = 'BRN-4' and measured_at between "
        "'2026-08-10 13:00+00' and '2026-08-10 14:00+00'\"",
        " count\n-------\n  1312\n(1 row)",
    )
    session.reply(
        "The cache. `cached()` kept the old record until its hour was over, so 1,312 readings were stored "
        "with an offset that was no longer true. A shorter TTL makes the window smaller, it does not "
        "close it."
    )
    session.prompt("What would close it?")
    session.note("Let me see how big the station list is if we load all of it at the start of a run.")
    session.shell(
        "python - <<'PY'\n...\nPY",
        "9 gauges in use, 212 in the authority's nightly dump stations.json: 40 KB, loaded in 6 ms",
    )
    session.reply(
        "Load the authority's nightly dump once per run: 212 gauges are 40 KB and 6 ms, and every record "
        "carries `valid_from`, so the offset can be chosen by the time of the reading, not by the time of "
        "the import. Then there is nothing left to cache, and one service fewer to run."
    )
    session.prompt("So Redis goes. Do it, with the offset by time of reading.")
    session.write(
        "saltern/stations.py",
        '"""What is known about a gauge, from the authority\'s nightly dump."""\n\n'
        "import json\nfrom functools import cache\nfrom pathlib import Path\n\n"
        'DUMP = Path("/var/lib/saltern/stations.json")\n\n\n'
        "@cache\n"
        "def offsets(dump: Path = DUMP) -> dict[str, list[tuple[str, int]]]:\n"
        '    """Of every gauge its offsets, each with the time from which it holds; newest last."""\n'
        "    records = json.loads(dump.read_text())\n"
        "    return {\n"
        '        name: sorted((one["valid_from"], one["datum_offset_cm"]) for one in history)\n'
        "        for name, history in records.items()\n"
        "    }\n\n\n"
        "def offset_cm(name: str, measured_at: str) -> int:\n"
        '    """What to add to a raw level of that time to get the level above chart datum."""\n'
        "    return next(cm for since, cm in reversed(offsets()[name]) if since <= measured_at)\n",
    )
    session.delete("saltern/cache.py")
    session.edit(
        "saltern/importer.py",
        'raw + offset_cm(row["station"]))',
        'raw + offset_cm(row["station"], row["measured_at"]))',
    )
    session.edit("tests/test_importer.py", "lambda name: 14", "lambda name, measured_at: 14")
    session.shell(
        "python -m pytest -q",
        "F\nE   ImportError: cannot import name 'cached' from 'saltern.cache' (unknown location)\n1 "
        "failed in 0.06s",
        code=1,
    )
    session.shell(
        "find . -name '__pycache__' -prune -exec rm -r {} + ; python -m pytest -q", ".\n1 passed in 0.05s"
    )
    session.prompt("And the 1,312 wrong rows?")
    session.shell(
        "psql -c \"update reading set level_cm = level_cm - 14 where station = 'BRN-4' and measured_at "
        "between '2026-08-10 13:00+00' and '2026-08-10 14:00+00'\"",
        "UPDATE 1312",
    )
    session.reply(
        "Corrected. We drop the Redis cache because it served offsets that were no longer true, and "
        "because the data it saved us from fetching fits into a 40 KB file that is read in 6 ms."
    )
    session.commit("Drop the Redis cache\n\nOffsets come from the nightly dump, by the time of the reading.")


def _clean_up_after_cache(history: SampleHistory) -> None:
    session = history.cursor_cli_session(
        "saltern/redis-leftovers",
        "Remove what is left of Redis",
        utc_time(8, 13, "16:05"),
        model="composer-2",
        stored_in="both",
    )
    session.prompt("grep for redis in this repo and remove what is left of it")
    session.grep("redis", "docker-compose.yml:4:  redis:", "docker-compose.yml:5:    image: redis:7")
    session.edit(
        "docker-compose.yml",
        "  redis:\n    image: redis:7\n    command: redis-server --maxmemory 64mb --maxmemory-policy "
        "noeviction\n",
        "",
    )
    session.edit(
        "README.md",
        "    python -m saltern.importer readings.csv\n",
        "    python -m saltern.importer readings.csv\n\n"
        "Needs PostgreSQL and the authority's nightly dump in `/var/lib/saltern/stations.json`.\n",
    )
    session.reply("Only docker-compose.yml still named it. The README now says what is needed instead.")
    session.commit_by_hand("Remove what was left of Redis", minutes=2)


def _duplicates(history: SampleHistory) -> None:
    session = history.cursor_session(
        "saltern/duplicates", "Readings twice in the table", utc_time(8, 26, "11:15"), model="gpt-5.2-codex"
    )
    session.prompt(
        "Re-running an import doubles the readings. Make it safe to run twice.",
        files=["saltern/importer.py", "schema.sql"],
    )
    session.read("saltern/importer.py", "schema.sql")
    session.reply(
        "Two steps: a primary key over (station, measured_at), and `on conflict do update`. Update rather "
        "than nothing, because the authority corrects readings afterwards and the later file is the "
        "better one."
    )
    session.prompt("Is 'do update' not slower?")
    session.reply("About 8 % here, 21.0 against 19.4 s a day. Correctness is worth that.")
    session.edit(
        "schema.sql",
        "    level_cm integer not null\n",
        "    level_cm integer not null,\n    primary key (station, measured_at)\n",
    )
    session.edit(
        "saltern/importer.py",
        '            cursor.execute("insert into reading values (%s, %s, %s)", row)\n',
        "            cursor.execute(UPSERT, row)\n",
    )
    session.edit(
        "saltern/importer.py",
        "class Reading(NamedTuple):",
        "# The authority corrects readings afterwards: of two for the same moment the later file is right.\n"
        'UPSERT = """\n    insert into reading values (%s, %s, %s)\n'
        "    on conflict (station, measured_at) do update set level_cm = excluded.level_cm\n"
        '"""\n\n\nclass Reading(NamedTuple):',
    )
    session.shell(
        "python -m saltern.importer day.csv; python -m saltern.importer day.csv; psql -tc 'select "
        "count(*) from reading'",
        "2880\n2880\n  2880",
    )
    session.reply(
        "Run twice, 2,880 rows. The old table needs its duplicates removed before the key can be added; "
        "not done yet."
    )
    session.commit_by_hand("Make an import safe to run twice", minutes=25)
