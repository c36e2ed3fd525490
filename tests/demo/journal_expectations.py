"""What the entry of each demo commit must contain, written from the conversations.

Every text is a verbatim part of a message. Entries with ``is_tuning`` were read while the extraction was
written; the others were not.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Expected:
    """Texts in the sections of one entry."""

    repository: str
    subject: str
    is_tuning: bool
    decisions: tuple[str, ...] = ()  # in Decisions: what was chosen, and why
    dropped: tuple[str, ...] = ()  # in Decisions: alternatives that were considered and not taken
    errors: tuple[str, ...] = ()  # in Frustrations: what failed, and how it ended
    corrections: tuple[str, ...] = ()  # in Frustrations: the user stopped or corrected the assistant
    results: tuple[str, ...] = ()  # in Summary, Synopsis, Accomplishments or Decisions
    open_items: tuple[str, ...] = ()  # in Open
    anywhere: tuple[str, ...] = ()
    not_errors: tuple[str, ...] = ()  # not in Frustrations
    not_decisions: tuple[str, ...] = ()  # not in Decisions
    nowhere: tuple[str, ...] = ()


EXPECTED = (
    Expected(
        "tideline",
        "Read timetable times as local time",
        is_tuning=True,
        dropped=(
            "I did not make the zone a setting: all three routes leave from the same quay, and a setting "
            "nobody changes is one more thing to get wrong.",
        ),
        errors=("AssertionError: assert datetime.datetime(2026, 7, 6, 7, 40", "2 passed"),
        results=("The CSV has local times; `_time` declared them UTC", 'uses `ZoneInfo("Europe/Oslo")`'),
        open_items=("The night of 25 October is still open",),
        anywhere=("Why is everything two hours late?",),
        not_decisions=("Committed.",),
    ),
    Expected(
        "tideline",
        "Decide which hour is meant when the clocks change",
        is_tuning=False,
        decisions=(
            "For the doubled hour I suggest the first pass (`fold=0`)",
            "For the missing hour: refuse the file.",
            "Agreed on both. Name the error TimetableError and say which line.",
        ),
        dropped=("passing it through would touch three signatures",),
        errors=("1 failed, 3 passed", "4 passed"),
        anywhere=(
            "a silent shift would hide it",
            "by PEP 495 a time in the doubled hour equals no time of another zone",
            "Write the tests, both nights.",
        ),
    ),
    Expected(
        "tideline",
        "Add /api/departures",
        is_tuning=True,
        decisions=("The tag is a hash over route and time",),
        dropped=("I left pagination out as planned: 214 rows are 19 KB.",),
        results=("6 passed",),
        anywhere=("No framework.", "also say in the README that times carry their offset"),
    ),
    Expected(
        "tideline",
        "Poll the operator's feed every 90 seconds",
        is_tuning=False,
        decisions=("I would poll every 90 seconds: 40 an hour", "Do it. Honour Retry-After."),
        corrections=("Don't call the live feed again, we are still blocked for four minutes.",),
        anywhere=("Jitter keeps two instances from asking", "60 requests an hour per key."),
        nowhere=("opf-7hQ2vX9bRk4Lm8TzW3c",),
    ),
    Expected(
        "tideline",
        "Give the board a caption and headers",
        is_tuning=True,
        results=("The table now has a caption and column headers with `scope`.",),
        anywhere=("colour contrast, is in a stylesheet that is not in this repository", "score 61"),
        nowhere=("prefers-contrast",),
    ),
    Expected(
        "tideline",
        "Read water levels, unless they are old",
        is_tuning=False,
        decisions=(
            "shows nothing when it is older than 30 minutes",
            "Good. The name of the field is level_cm on both sides.",
        ),
        dropped=("Not through the database: then every schema change breaks the board.",),
        results=("2 passed",),
        open_items=("The page does not show it yet",),
        anywhere=("An old level is worse than none.",),
    ),
    Expected(
        "tideline",
        "Keep every version of the timetable in SQLite",
        is_tuning=True,
        decisions=(
            "What should happen to a departure that a correction removes?",
            "Keep it with valid_until",
            "nothing is ever deleted",
            "use WAL mode, the page reads while I import",
        ),
        dropped=("Delete it",),
        results=("10 passed", "`replace_all` closes what is no longer in the file"),
    ),
    Expected(
        "tideline",
        "Read times after midnight such as 25:10",
        is_tuning=False,
        decisions=("I would split off the hour, take it modulo 24 and add the days.",),
        dropped=("The service day itself is not kept; nothing needs it yet.",),
        errors=("ValueError: Invalid isoformat string: '2026-11-01T25:10'",),
        results=("11 passed", "24:35 and 25:10 are read as 00:35 and 01:10 of the next day."),
    ),
    Expected(
        "tideline",
        "Show cancelled departures",
        is_tuning=True,
        decisions=("since a line through text is invisible to screen readers",),
        dropped=("`replaced` is parsed but shown as planned: three cases in 628",),
        results=("11 passed",),
        anywhere=("The live feed has cancellations now.",),
    ),
    Expected(
        "tideline",
        "Store departures in UTC",
        is_tuning=False,
        decisions=("Times must be stored in UTC.", "Then store UTC."),
        errors=(
            "1 failed, 10 passed",
            "The test asks with a local time. `board_at` has to convert its argument as well.",
            "11 passed",
        ),
        open_items=("there is no alert on the share of 503", "1,284 of them still carry local offsets"),
        anywhere=("`board_at` compares local ISO strings", "417 requests failed."),
    ),
    Expected(
        "tideline",
        "Release 0.4.0",
        is_tuning=True,
        dropped=("I left out the polling change: users do not see it.",),
        open_items=("The tag v0.4.0 is not set yet",),
        anywhere=("for users, not for developers",),
    ),
    Expected(
        "saltern",
        "Import gauge readings",
        is_tuning=False,
        results=("1 passed", "inserts every reading"),
        anywhere=("Levels in whole centimetres above chart datum", "The API is asked once per row for now."),
    ),
    Expected(
        "saltern",
        "Cache station records in Redis",
        is_tuning=True,
        decisions=(
            "I would put the records into Redis, which the server already runs for the job queue",
            "Yes, Redis. Several import jobs run at once, so they should share it.",
        ),
        results=("One day now takes 19 seconds instead of 40 minutes; 9 gauges mean 9 calls.",),
        anywhere=("99.5 % of the time is `station()`", "There is no bulk endpoint"),
    ),
    Expected(
        "saltern",
        "Let cached stations expire after an hour",
        is_tuning=False,
        results=("Records now expire after an hour (`ex=3600`).",),
        anywhere=("TTL_SECONDS is never used, the keys live for ever. Fix that.",),
        nowhere=("Importing one day takes 40 minutes",),
    ),
    Expected(
        "saltern",
        "Drop the Redis cache",
        is_tuning=True,
        decisions=(
            "Load the authority's nightly dump once per run",
            "So Redis goes. Do it, with the offset by time of reading.",
            "We drop the Redis cache because it served offsets that were no longer true",
        ),
        dropped=("A shorter TTL makes the window smaller, it does not close it.",),
        errors=("ImportError: cannot import name 'cached' from 'saltern.cache'", "1 passed"),
        anywhere=("1,312 readings were stored with an offset that was no longer true", "14 cm too high"),
    ),
    Expected(
        "saltern",
        "Remove what was left of Redis",
        is_tuning=False,
        anywhere=("Only docker-compose.yml still named it.", "remove what is left of it"),
    ),
    Expected(
        "saltern",
        "Make an import safe to run twice",
        is_tuning=True,
        decisions=("Update rather than nothing, because the authority corrects readings afterwards",),
        results=("Run twice, 2,880 rows.",),
        open_items=("The old table needs its duplicates removed before the key can be added; not done yet.",),
        anywhere=("Is 'do update' not slower?", "About 8 % here, 21.0 against 19.4 s a day."),
    ),
    Expected(
        "saltern",
        "Export the latest levels",
        is_tuning=False,
        decisions=("Saltern can write `levels.json` after each import",),
        dropped=("Not through the database: then every schema change breaks the board.",),
    ),
    Expected(
        "saltern",
        "Import in batches of 5,000 with COPY",
        is_tuning=True,
        decisions=("I would take 5,000.", "5,000 it is. Keep the 'later file wins' rule."),
        dropped=("50,000 gains a tenth of a second and needs ten times the memory",),
        errors=(
            "ImportError: cannot import name 'batched' from 'itertools'",
            "`itertools.batched` needs Python 3.12 and the server has 3.11.",
        ),
        results=("38.0 s became 4.1 s.",),
    ),
    Expected(
        "saltern",
        "Backfill the yearly archives",
        is_tuning=False,
        errors=("Killed", "Exit code 137: the kernel killed it."),
        corrections=("Stop. It eats all memory on 2022, the web server next to it got slow.",),
        results=("All years are in: 26,952,961 readings.",),
        open_items=("2021 has only 1,701,121", "Someone has to ask the authority for the rest of 2021."),
    ),
    Expected(
        "saltern",
        "Read Latin-1 files of the northern office",
        is_tuning=True,
        decisions=(
            "I would try UTF-8 strictly and fall back to Latin-1 for the whole file",
            "do that, and print which files were latin-1 so I can nag them",
        ),
        errors=("UnicodeDecodeError: 'utf-8' codec can't decode byte 0xf8 in position 1402",),
        results=("north.csv imports: 2,880 readings", "1 passed"),
        anywhere=("That office exports Latin-1, everyone else UTF-8.",),
    ),
    Expected(
        "saltern",
        "Let the later line win inside a batch too",
        is_tuning=False,
        results=("One bug fixed: when a batch held a reading and its correction, an arbitrary one won",),
        open_items=("the permissions of stations.json on gauge-box",),
        anywhere=(
            "keeps an arbitrary row when one batch holds both the original and its correction",
            "The first finding is real: a batch can contain a correction of its own row.",
        ),
    ),
    Expected(
        "lintel",
        "Check Markdown links",
        is_tuning=True,
        dropped=("I left them out because none of your files use them.",),
        results=("It works without a Markdown parser: split at `](`.",),
        anywhere=("no dependencies",),
        not_errors=("cargo run",),
    ),
    Expected(
        "lintel",
        "Make anchors from headings",
        is_tuning=False,
        results=("Anchors follow the forges' rule, doubled hyphens included.", "1 passed"),
        open_items=("that is not handled yet",),
        anywhere=("what's the rule for turning a heading into an anchor?",),
    ),
    Expected(
        "lintel",
        "Tell broken links from failure by the exit code",
        is_tuning=True,
        decisions=(
            "That is what grep does, so scripts already expect it.",
            "Like grep, good. Do the codes now, JSON later when somebody needs it.",
        ),
        dropped=("Use 64 for usage, like sysexits.",),
        results=("Unreadable files give 2, broken links 1.",),
    ),
    Expected(
        "lintel",
        "Check files with eight threads",
        is_tuning=False,
        decisions=(
            "`std::thread::scope` with 8 workers takes 2.0 s and the binary stays at 1.1 MB",
            "plain threads. no dependency is worth 0.1 s",
        ),
        dropped=(
            "tokio would make it 6.8 MB for no gain",
            "rayon is a tenth faster and the first dependency.",
        ),
        results=("11 s became 2.0 s.",),
        anywhere=("rayon, tokio or plain threads?",),
    ),
    Expected(
        "lintel",
        "Decode blanks in link targets",
        is_tuning=True,
        dropped=("Only `%20` is decoded; other escapes would need a table, and I found none in the docs.",),
        errors=(
            "error[E0716]: temporary value dropped while borrowed",
            "`split` borrows from a string that nobody keeps.",
        ),
        anywhere=(
            "`%20` is never decoded, on no system",
            "anchors are not cut off before looking for the file",
        ),
    ),
    Expected(
        "lintel",
        "Check anchors in other files",
        is_tuning=False,
        results=("each file's anchors are read once, behind a Mutex",),
        anywhere=("don't read a file twice for its anchors", "It found a real one: `#instal`"),
    ),
    Expected(
        "lintel",
        "Add an npm wrapper",
        is_tuning=True,
        decisions=(
            "One package per platform with `os` and `cpu` set",
            "No postinstall script, so it also works with `--ignore-scripts`.",
        ),
        errors=("error TS2307: Cannot find module 'node:child_process'", "become devDependencies."),
        open_items=("Publishing the three platform packages is still to be done in CI.",),
        anywhere=("Write the wrapper in TypeScript.",),
    ),
    Expected(
        "lintel",
        "Say what the modules are for",
        is_tuning=False,
        anywhere=("Add a module comment to check.rs and slug.rs, one sentence each.",),
        not_decisions=("Done, one sentence each.",),
    ),
    Expected(
        "website",
        "Build the site from notes",
        is_tuning=True,
        decisions=("so there is no compiler step",),
        open_items=("Markdown to HTML is not done yet.",),
        anywhere=("no framework",),
    ),
    Expected(
        "website",
        "Add an RSS feed",
        is_tuning=False,
        results=("public/feed.xml has the newest twenty notes",),
        anywhere=("validators warn, readers do not care", "Add an RSS feed, newest twenty notes."),
    ),
    Expected(
        "website",
        "Show reading time and German dates",
        is_tuning=True,
        decisions=(
            "Die Zeitzone ist fest auf UTC gesetzt, sonst wäre westlich von Greenwich der 17. Juli daraus",
            "200 liegt in der Mitte.",
        ),
        anywhere=(
            "Warum nicht 250 Wörter?",
            "Gerechnet wird mit 200 Wörtern pro Minute",
            "die Lesezeit sehen",
        ),
    ),
    Expected(
        "website",
        "Follow the system's dark mode",
        is_tuning=False,
        anywhere=("no toggle, no javascript", "browsers before 2024 show the light page"),
    ),
    Expected(
        "website",
        "Let the gallery fit on phones",
        is_tuning=True,
        decisions=("`repeat(auto-fill, minmax(min(16rem, 100%), 1fr))` gives as many as fit",),
        corrections=("auto-fit stretches a lone picture over the whole width. auto-fill as you said.",),
        results=("At 375 px there is one column, at 1200 px three.",),
        anywhere=("the gallery runs out of the page",),
    ),
    Expected(
        "website",
        "Add ruby and Japanese fonts",
        is_tuning=False,
        decisions=("ひらがなの後の《》はそのまま残るので、引用符として使っても壊れません。",),
        open_items=("これは未解決です。",),
        anywhere=("漢字の直後の《》だけを変換します。", "Georgia だと日本語が中国語の字形になることがある。"),
    ),
    Expected(
        "website",
        "Stop the build on dead links",
        is_tuning=True,
        decisions=("Remove it, and let the build fail on dead links from now on.",),
        dropped=("or you add the picture",),
        results=("check.sh ends with lintel's own exit code, so 1 stops the build.",),
        anywhere=("the picture never was in the repository",),
    ),
)
