"""Sync of a Cursor database of 500 MB: the first one, one without changes, and one after a new bubble."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

from backscroll.config import NamedRoot
from backscroll.history.history import History
from benchmarks.benchmark_context import BACKSCROLL_COMMAND, BenchmarkContext
from benchmarks.generated_histories import CACHE_FOLDER, cursor_history, fill_page_cache
from benchmarks.measurement import Duration, fastest, run_process, time_best, time_once
from benchmarks.result_table import Result, duration_result

_UNCHANGED_RUNS = 7
_NEW_BUBBLE_RUNS = 5


def measure(context: BenchmarkContext) -> Iterator[Result]:
    del context  # the database is the same at every scale
    root, home = CACHE_FOLDER / "cursor-growing", CACHE_FOLDER / "home-cursor"
    for folder in (root, home):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(cursor_history(), root)
    fill_page_cache(root)
    options = ["--home", str(home), "--root", f"cursor={root}"]
    run = run_process([*BACKSCROLL_COMMAND, *options, "sync"], accepted_exit_codes=(0, 3))
    yield Result(
        key="cursor first sync",
        label="Cursor 500 MB, first sync",
        value=run.wall_seconds,
        unit="s",
        target=5,
        cpu_seconds=run.cpu_seconds,
    )
    with History(roots=[NamedRoot("cursor", root)], home=home) as history:
        history.sync()
        unchanged = time_best(history.sync, runs=_UNCHANGED_RUNS)
        new_bubble = fastest(_time_new_bubble(history, root) for _ in range(_NEW_BUBBLE_RUNS))
    for key, label, duration, target in (
        ("cursor unchanged", "Cursor 500 MB, sync without changes, in process", unchanged, 100),
        ("cursor append", "Cursor 500 MB, new bubble to searchable, in process", new_bubble, 300),
    ):
        yield duration_result(
            key, label, duration.wall_seconds, cpu_seconds=duration.cpu_seconds, target=target
        )


def _time_new_bubble(history: History, root: Path) -> Duration:
    word = f"zeppelin{uuid4().hex}"
    _add_bubble(root / "User/globalStorage/state.vscdb", word)

    def sync_and_search() -> None:
        history.sync()
        if not history.search_sessions(word).data:
            raise RuntimeError("the new bubble was not found")

    return time_once(sync_and_search)


def _add_bubble(path: Path, text: str) -> None:
    """Add a bubble to the session of median size, as Cursor does: its row, its header and the composer."""
    with closing(sqlite3.connect(path)) as db, db:
        rows = db.execute(
            "select key, value from cursorDiskKV where key >= 'composerData:' and key < 'composerData;'"
            " order by length(value)"
        ).fetchall()
        key, value = rows[len(rows) // 2]
        composer = json.loads(value)
        headers = composer["fullConversationHeadersOnly"]
        template_key = f"bubbleId:{composer['composerId']}:{headers[0]['bubbleId']}"
        template = db.execute("select value from cursorDiskKV where key = ?", [template_key]).fetchone()[0]
        bubble = {**json.loads(template), "bubbleId": str(uuid4()), "text": text}
        composer["fullConversationHeadersOnly"] = [*headers, {**headers[0], "bubbleId": bubble["bubbleId"]}]
        composer["lastUpdatedAt"] = composer.get("lastUpdatedAt", 0) + 1000
        bubble_key = f"bubbleId:{composer['composerId']}:{bubble['bubbleId']}"
        db.execute("insert into cursorDiskKV (key, value) values (?, ?)", [bubble_key, json.dumps(bubble)])
        db.execute("update cursorDiskKV set value = ? where key = ?", [json.dumps(composer), key])
        db.execute(
            "update composerHeaders set lastUpdatedAt = lastUpdatedAt + 1000 where composerId = ?",
            [composer["composerId"]],
        )
