"""Saltern, an importer of tide gauge readings: September and October."""

from backscroll.testing.claude_code import tool_calls
from backscroll.testing.demo.claude_session import SubagentTask
from backscroll.testing.demo.projects import saltern_files as files
from backscroll.testing.demo.sample_history import SampleHistory, utc_time


def add_sessions(history: SampleHistory) -> None:
    """Add the sessions from batch inserts to a code review."""
    _batches(history)
    _backfill(history)
    _slow_query(history)
    _encoding(history)
    _review(history)


def _batches(history: SampleHistory) -> None:
    session = history.claude_session(
        "saltern/copy-batches",
        "Import in batches with COPY",
        utc_time(9, 8, "08:25"),
        version="2.1.251",
        model="claude-opus-5",
    )
    session.prompt("A month takes 38 seconds to insert. Is row by row the reason?")
    session.think("")
    session.read("saltern/importer.py")
    session.shell(
        "python /tmp/bench_store.py month.csv",
        "execute per row      38.0 s\nexecutemany           9.7 s\nCOPY, batches 1,000    5.2 s\n"
        "COPY, batches 5,000    4.1 s\nCOPY, batches 50,000   4.0 s",
    )
    session.reply(
        "Yes. COPY into a temporary table and one upsert per batch takes 4.1 s with 5,000 rows a batch; "
        "50,000 gains a tenth of a second and needs ten times the memory. I would take 5,000."
    )
    session.prompt("5,000 it is. Keep the 'later file wins' rule.")
    session.edit(
        "saltern/importer.py",
        'UPSERT = """\n    insert into reading values (%s, %s, %s)\n',
        'BATCH = 5000\nUPSERT = """\n    insert into reading select distinct on (station, measured_at) * '
        "from incoming\n",
    )
    session.edit(
        "saltern/importer.py",
        '    """Insert readings one by one. Returns how many."""\n'
        "    count = 0\n"
        "    with connection.cursor() as cursor:\n"
        "        for row in rows:\n"
        "            cursor.execute(UPSERT, row)\n"
        "            count += 1\n"
        "    connection.commit()\n"
        "    return count\n",
        '    """Copy readings in batches, each with its upsert in one transaction. Returns how many."""\n'
        "    count = 0\n"
        "    for batch in batched(rows, BATCH):\n"
        "        with connection.transaction(), connection.cursor() as cursor:\n"
        '            cursor.execute("create temp table incoming (like reading) on commit drop")\n'
        '            with cursor.copy("copy incoming from stdin") as copy:\n'
        "                for row in batch:\n"
        "                    copy.write_row(row)\n"
        "            cursor.execute(UPSERT)\n"
        "        count += len(batch)\n"
        "    return count\n",
    )
    session.edit(
        "saltern/importer.py",
        "from collections.abc import Iterator\nfrom pathlib import Path\n",
        "from collections.abc import Iterator\nfrom itertools import batched\nfrom pathlib import Path\n",
    )
    session.shell(
        "python -m pytest -q",
        "E   ImportError: cannot import name 'batched' from 'itertools'\n1 error in 0.04s",
        code=2,
    )
    session.note(
        "`itertools.batched` needs Python 3.12 and the server has 3.11. A few lines of our own, then."
    )
    session.edit("saltern/importer.py", "from itertools import batched\n", "from itertools import islice\n")
    session.edit(
        "saltern/importer.py",
        "def store(connection, rows) -> int:",
        "def batched(rows, size):\n"
        '    """Lists of so many rows; itertools has this from Python 3.12 on."""\n'
        "    rows = iter(rows)\n"
        "    while batch := list(islice(rows, size)):\n"
        "        yield batch\n\n\n"
        "def store(connection, rows) -> int:",
    )
    session.shell(
        "python -m pytest -q && python /tmp/bench_store.py month.csv",
        ".\n1 passed in 0.06s\nCOPY, batches 5,000    4.1 s",
    )
    session.reply(
        "38.0 s became 4.1 s. A batch and its upsert are one transaction, so a crash loses at most 5,000 "
        "rows of work."
    )
    session.commit("Import in batches of 5,000 with COPY")


def _backfill(history: SampleHistory) -> None:
    session = history.claude_session(
        "saltern/backfill",
        "Backfill 2019 to 2025",
        utc_time(9, 24, "17:10"),
        version="2.1.258",
        model="claude-sonnet-5",
    )
    session.prompt(
        "Write a script that imports the yearly archives 2019 to 2025 from /data/archive, then run it."
    )
    session.write("saltern/backfill.py", files.BACKFILL)
    session.shell(
        "ls -sh /data/archive",
        "total 1.9G\n288M 2019.csv\n291M 2020.csv\n117M 2021.csv\n290M 2022.csv\n293M 2023.csv\n295M "
        "2024.csv\n296M 2025.csv",
    )
    session.note("2021 has less than half the size of the others. I import it anyway and look afterwards.")
    session.shell(
        "python -m saltern.backfill /data/archive",
        "2019 4204800\n2020 4216320\n2021 1701121\nKilled",
        code=137,
    )
    session.transcript.interrupt()
    session.prompt("Stop. It eats all memory on 2022, the web server next to it got slow.")
    session.think("")
    session.reply(
        "Exit code 137: the kernel killed it. `distinct on` sorts a batch, that is small; what grows is "
        "`offsets()`, no... it is psycopg keeping the notices of 'create temp table', one per batch. I "
        "can drop the handler's list between years."
    )
    session.edit(
        "saltern/backfill.py",
        '    with psycopg.connect("") as db:\n        for year in range(FIRST, LAST + 1):\n'
        '            file = folder / f"{year}.csv"\n'
        "            counts[year] = store(db, readings(file)) if file.exists() else 0\n",
        "    for year in range(FIRST, LAST + 1):\n"
        '        file = folder / f"{year}.csv"\n'
        "        if not file.exists():\n"
        "            counts[year] = 0\n"
        "            continue\n"
        "        # A connection of its own for every year: a server notice per batch is kept as long as "
        "it lives.\n"
        '        with psycopg.connect("") as db:\n'
        "            counts[year] = store(db, readings(file))\n",
    )
    session.shell(
        "nice -n 19 python -m saltern.backfill /data/archive",
        "2019 4204800\n2020 4216320\n2021 1701121\n2022 4204800\n2023 4204800\n2024 4216320\n2025 4204800",
    )
    session.reply(
        "All years are in: 26,952,961 readings. Open: 2021 has only 1,701,121, February to August are "
        "missing in the archive itself. Someone has to ask the authority for the rest of 2021."
    )
    session.commit_by_hand("Backfill the yearly archives", minutes=4)


def _slow_query(history: SampleHistory) -> None:
    session = history.cursor_cli_session(
        "saltern/explain",
        "Why is latest() slow",
        utc_time(9, 30, "09:33"),
        model="composer-2",
        stored_in="transcript",
    )
    session.prompt("latest() takes 9 s since the backfill. Why?")
    session.shell(
        "psql -c 'explain analyze ...'",
        "Unique (actual time=9120.1..9131.8)\n  -> Sort  Sort Method: external merge  Disk: 812MB",
    )
    session.reply(
        "It sorts all 27 million rows on disk to find nine. The primary key cannot be walked backwards "
        "per station with `distinct on`. A lateral join over the nine station names uses the key and "
        "takes 3 ms."
    )
    session.prompt("OK, I'll think about it, maybe a view.")
    session.reply("A view keeps the query in one place; say the word and I write it. Nothing was changed.")


def _encoding(history: SampleHistory) -> None:
    session = history.cursor_cli_session(
        "saltern/latin-1",
        "Station names with ø",
        utc_time(10, 8, "13:48"),
        model="claude-4.6-sonnet-thinking",
    )
    session.prompt(
        "import fails on the new file from the northern office:\nUnicodeDecodeError: 'utf-8' codec can't "
        "decode byte 0xf8 in position 1402"
    )
    session.think("0xf8 is ø in latin-1.")
    session.shell(
        "head -c 1420 north.csv | tail -c 40 | xxd | tail -2",
        "00000010: 422c 4272 f86e 6ef8 7973 756e 642c 3230  B,Br.nn.ysund,20",
    )
    session.read("saltern/importer.py")
    session.reply(
        '0xf8 is ø in Latin-1: "Brønnøysund". That office exports Latin-1, everyone else UTF-8. I would '
        "try UTF-8 strictly and fall back to Latin-1 for the whole file: a Latin-1 text with such letters "
        "is never valid UTF-8, so the guess is safe."
    )
    session.prompt("do that, and print which files were latin-1 so I can nag them")
    session.edit(
        "saltern/importer.py",
        '    with path.open(newline="") as file:\n        for row in csv.DictReader(file):\n',
        '    with path.open(newline="", encoding=encoding(path)) as file:\n        for row in '
        "csv.DictReader(file):\n",
    )
    session.edit(
        "saltern/importer.py",
        "def readings(path: Path)",
        "def encoding(path: Path) -> str:\n"
        '    """UTF-8, or Latin-1 for the offices that still write it; their files are never valid '
        'UTF-8."""\n'
        "    try:\n"
        '        path.read_text(encoding="utf-8")\n'
        "    except UnicodeDecodeError:\n"
        '        print(f"{path.name} is Latin-1", file=sys.stderr)\n'
        '        return "latin-1"\n'
        '    return "utf-8"\n\n\n'
        "def readings(path: Path)",
    )
    session.failed_call("Shell", {"command": "pytest -q"}, "pytest: command not found")
    session.shell("python -m pytest -q", ".\n1 passed in 0.06s")
    session.reply('north.csv imports: 2,880 readings, and "north.csv is Latin-1" on stderr.')
    session.commit_by_hand("Read Latin-1 files of the northern office")


def _review(history: SampleHistory) -> None:
    session = history.claude_session(
        "saltern/review",
        "Review before the handover",
        utc_time(10, 27, "10:00"),
        version="2.1.284",
        model="claude-opus-5",
    )
    session.transcript.attachment("date", date="2026-10-27")
    session.prompt(
        "Review the whole importer before I hand it over: correctness, security, operations. Use subagents."
    )
    folder = session.folder
    session.delegate(
        SubagentTask(
            "Look for correctness bugs",
            "Read saltern/importer.py and saltern/backfill.py and list anything that can store a wrong "
            "level.",
            "One: `distinct on (station, measured_at) *` without `order by` keeps an arbitrary row when "
            "one batch holds both the original and its correction.",
            [
                tool_calls.read(f"{folder}/saltern/{name}", session.repository.files[f"saltern/{name}"])
                for name in ("importer.py", "backfill.py")
            ],
            kind="code-reviewer",
            model="claude-sonnet-5",
        ),
        SubagentTask(
            "Look for security problems",
            "Look for SQL built from strings, secrets in the repository, and unchecked paths.",
            "No SQL is built from strings, no secrets. But whoever may write `DUMP` decides every level: "
            "check its permissions on gauge-box.",
            [tool_calls.grep("execute\\(f", []), tool_calls.grep("password|secret|token", [])],
            kind="code-reviewer",
            model="claude-sonnet-5",
        ),
    )
    session.think("")
    session.note("The first finding is real: a batch can contain a correction of its own row.")
    session.edit(
        "saltern/importer.py",
        "    insert into reading select distinct on (station, measured_at) * from incoming\n",
        "    insert into reading select distinct on (station, measured_at) station, measured_at, level_cm\n"
        "    from incoming order by station, measured_at, number desc\n",
    )
    session.edit(
        "saltern/importer.py",
        "(like reading) on commit drop",
        "(like reading, number serial) on commit drop",
    )
    session.edit(
        "saltern/importer.py",
        '"copy incoming from stdin"',
        '"copy incoming (station, measured_at, level_cm) from stdin"',
    )
    session.shell("python -m pytest -q", ".\n1 passed in 0.06s")
    session.reply(
        "One bug fixed: when a batch held a reading and its correction, an arbitrary one won; now the "
        "later line does. Open for the handover: the permissions of stations.json on gauge-box, "
        "`result_ttl` of the job queue, and the missing months of 2021."
    )
    session.commit("Let the later line win inside a batch too")
    session.transcript.cost(0.16, model="claude-opus-5", output_tokens=3120)
