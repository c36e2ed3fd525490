"""Saltern, an importer of tide gauge readings: September and October, when it became fast and careful."""

from backscroll.testing.claude_code import tool_calls
from backscroll.testing.demo.claude_session import Order
from backscroll.testing.demo.projects import importer_files as files
from backscroll.testing.demo.story import Story, day

__all__ = ["tell"]


def tell(story: Story) -> None:
    """From copying in batches to a review."""
    _batches(story)
    _backfill(story)
    _slow_query(story)
    _encoding(story)
    _review(story)


def _batches(story: Story) -> None:
    scene = story.claude(
        "saltern/copy-batches",
        "Import in batches with COPY",
        day(9, 8, "08:25"),
        version="2.1.251",
        model="claude-opus-5",
    )
    scene.say("A month takes 38 seconds to insert. Is row by row the reason?")
    scene.think("")
    scene.read("saltern/importer.py")
    scene.shell(
        "python /tmp/bench_store.py month.csv",
        "execute per row      38.0 s\nexecutemany           9.7 s\nCOPY, batches 1,000    5.2 s\n"
        "COPY, batches 5,000    4.1 s\nCOPY, batches 50,000   4.0 s",
    )
    scene.reply(
        "Yes. COPY into a temporary table and one upsert per batch takes 4.1 s with 5,000 rows a batch; "
        "50,000 gains a tenth of a second and needs ten times the memory. I would take 5,000."
    )
    scene.say("5,000 it is. Keep the 'later file wins' rule.")
    scene.edit(
        "saltern/importer.py",
        'UPSERT = """\n    insert into reading values (%s, %s, %s)\n',
        'BATCH = 5000\nUPSERT = """\n    insert into reading select distinct on (station, measured_at) * '
        "from incoming\n",
    )
    scene.edit(
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
    scene.edit(
        "saltern/importer.py",
        "from collections.abc import Iterator\nfrom pathlib import Path\n",
        "from collections.abc import Iterator\nfrom itertools import batched\nfrom pathlib import Path\n",
    )
    scene.shell(
        "python -m pytest -q",
        "E   ImportError: cannot import name 'batched' from 'itertools'\n1 error in 0.04s",
        code=2,
    )
    scene.note("`itertools.batched` needs Python 3.12 and the server has 3.11. A few lines of our own, then.")
    scene.edit("saltern/importer.py", "from itertools import batched\n", "from itertools import islice\n")
    scene.edit(
        "saltern/importer.py",
        "def store(connection, rows) -> int:",
        "def batched(rows, size):\n"
        '    """Lists of so many rows; itertools has this from Python 3.12 on."""\n'
        "    rows = iter(rows)\n"
        "    while batch := list(islice(rows, size)):\n"
        "        yield batch\n\n\n"
        "def store(connection, rows) -> int:",
    )
    scene.shell(
        "python -m pytest -q && python /tmp/bench_store.py month.csv",
        ".\n1 passed in 0.06s\nCOPY, batches 5,000    4.1 s",
    )
    scene.reply(
        "38.0 s became 4.1 s. A batch and its upsert are one transaction, so a crash loses at most 5,000 "
        "rows of work."
    )
    scene.commit("Import in batches of 5,000 with COPY")


def _backfill(story: Story) -> None:
    scene = story.claude(
        "saltern/backfill",
        "Backfill 2019 to 2025",
        day(9, 24, "17:10"),
        version="2.1.258",
        model="claude-sonnet-5",
    )
    scene.say("Write a script that imports the yearly archives 2019 to 2025 from /data/archive, then run it.")
    scene.write("saltern/backfill.py", files.BACKFILL)
    scene.shell(
        "ls -sh /data/archive",
        "total 1.9G\n288M 2019.csv\n291M 2020.csv\n117M 2021.csv\n290M 2022.csv\n293M 2023.csv\n295M "
        "2024.csv\n296M 2025.csv",
    )
    scene.note("2021 has less than half the size of the others. I import it anyway and look afterwards.")
    scene.shell(
        "python -m saltern.backfill /data/archive",
        "2019 4204800\n2020 4216320\n2021 1701121\nKilled",
        code=137,
    )
    scene.transcript.interrupt()
    scene.say("Stop. It eats all memory on 2022, the web server next to it got slow.")
    scene.think("")
    scene.reply(
        "Exit code 137: the kernel killed it. `distinct on` sorts a batch, that is small; what grows is "
        "`offsets()`, no... it is psycopg keeping the notices of 'create temp table', one per batch. I "
        "can drop the handler's list between years."
    )
    scene.edit(
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
    scene.shell(
        "nice -n 19 python -m saltern.backfill /data/archive",
        "2019 4204800\n2020 4216320\n2021 1701121\n2022 4204800\n2023 4204800\n2024 4216320\n2025 4204800",
    )
    scene.reply(
        "All years are in: 26,952,961 readings. Open: 2021 has only 1,701,121, February to August are "
        "missing in the archive itself. Someone has to ask the authority for the rest of 2021."
    )
    scene.later("Backfill the yearly archives", minutes=4)


def _slow_query(story: Story) -> None:
    scene = story.terminal(
        "saltern/explain", "Why is latest() slow", day(9, 30, "09:33"), model="composer-2", kept="transcript"
    )
    scene.say("latest() takes 9 s since the backfill. Why?")
    scene.shell(
        "psql -c 'explain analyze ...'",
        "Unique (actual time=9120.1..9131.8)\n  -> Sort  Sort Method: external merge  Disk: 812MB",
    )
    scene.reply(
        "It sorts all 27 million rows on disk to find nine. The primary key cannot be walked backwards "
        "per station with `distinct on`. A lateral join over the nine station names uses the key and "
        "takes 3 ms."
    )
    scene.say("OK, I'll think about it, maybe a view.")
    scene.reply("A view keeps the query in one place; say the word and I write it. Nothing was changed.")


def _encoding(story: Story) -> None:
    scene = story.terminal(
        "saltern/latin-1", "Station names with ø", day(10, 8, "13:48"), model="claude-4.6-sonnet-thinking"
    )
    scene.say(
        "import fails on the new file from the northern office:\nUnicodeDecodeError: 'utf-8' codec can't "
        "decode byte 0xf8 in position 1402"
    )
    scene.think("0xf8 is ø in latin-1.")
    scene.shell(
        "head -c 1420 north.csv | tail -c 40 | xxd | tail -2",
        "00000010: 422c 4272 f86e 6ef8 7973 756e 642c 3230  B,Br.nn.ysund,20",
    )
    scene.read("saltern/importer.py")
    scene.reply(
        '0xf8 is ø in Latin-1: "Brønnøysund". That office exports Latin-1, everyone else UTF-8. I would '
        "try UTF-8 strictly and fall back to Latin-1 for the whole file: a Latin-1 text with such letters "
        "is never valid UTF-8, so the guess is safe."
    )
    scene.say("do that, and print which files were latin-1 so I can nag them")
    scene.edit(
        "saltern/importer.py",
        '    with path.open(newline="") as file:\n        for row in csv.DictReader(file):\n',
        '    with path.open(newline="", encoding=encoding(path)) as file:\n        for row in '
        "csv.DictReader(file):\n",
    )
    scene.edit(
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
    scene.fail("Shell", {"command": "pytest -q"}, "pytest: command not found")
    scene.shell("python -m pytest -q", ".\n1 passed in 0.06s")
    scene.reply('north.csv imports: 2,880 readings, and "north.csv is Latin-1" on stderr.')
    scene.later("Read Latin-1 files of the northern office")


def _review(story: Story) -> None:
    scene = story.claude(
        "saltern/review",
        "Review before the handover",
        day(10, 27, "10:00"),
        version="2.1.284",
        model="claude-opus-5",
    )
    scene.transcript.attachment("date", date="2026-10-27")
    scene.say(
        "Review the whole importer before I hand it over: correctness, security, operations. Use subagents."
    )
    folder = scene.folder
    scene.delegate(
        Order(
            "Look for correctness bugs",
            "Read saltern/importer.py and saltern/backfill.py and list anything that can store a wrong "
            "level.",
            "One: `distinct on (station, measured_at) *` without `order by` keeps an arbitrary row when "
            "one batch holds both the original and its correction.",
            [
                tool_calls.read(f"{folder}/saltern/{name}", scene.repository.files[f"saltern/{name}"])
                for name in ("importer.py", "backfill.py")
            ],
            kind="code-reviewer",
            model="claude-sonnet-5",
        ),
        Order(
            "Look for security problems",
            "Look for SQL built from strings, secrets in the repository, and unchecked paths.",
            "No SQL is built from strings, no secrets. But whoever may write `DUMP` decides every level: "
            "check its permissions on gauge-box.",
            [tool_calls.grep("execute\\(f", []), tool_calls.grep("password|secret|token", [])],
            kind="code-reviewer",
            model="claude-sonnet-5",
        ),
    )
    scene.think("")
    scene.note("The first finding is real: a batch can contain a correction of its own row.")
    scene.edit(
        "saltern/importer.py",
        "    insert into reading select distinct on (station, measured_at) * from incoming\n",
        "    insert into reading select distinct on (station, measured_at) station, measured_at, level_cm\n"
        "    from incoming order by station, measured_at, number desc\n",
    )
    scene.edit(
        "saltern/importer.py",
        "(like reading) on commit drop",
        "(like reading, number serial) on commit drop",
    )
    scene.edit(
        "saltern/importer.py",
        '"copy incoming from stdin"',
        '"copy incoming (station, measured_at, level_cm) from stdin"',
    )
    scene.shell("python -m pytest -q", ".\n1 passed in 0.06s")
    scene.reply(
        "One bug fixed: when a batch held a reading and its correction, an arbitrary one won; now the "
        "later line does. Open for the handover: the permissions of stations.json on gauge-box, "
        "`result_ttl` of the job queue, and the missing months of 2021."
    )
    scene.commit("Let the later line win inside a batch too")
    scene.transcript.cost(1.87, model="claude-opus-5", output_tokens=3120)
