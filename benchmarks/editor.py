"""Cursor's database of 500 MB: the first sync, nothing new, one bubble more."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

from backscroll.config import NamedRoot
from backscroll.history import History
from benchmarks.figures import Figure, lasted
from benchmarks.histories import FOLDER, cursor_ide, warm
from benchmarks.measure import best, run, timed
from benchmarks.stage import BACKSCROLL, Stage

__all__ = ["figures"]

_MORE = 5


def figures(stage: Stage) -> Iterator[Figure]:
    del stage  # the database is the same at every scale
    root, home = FOLDER / "cursor-growing", FOLDER / "home-cursor"
    for folder in (root, home):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(cursor_ide(), root)
    warm(root)
    places = ["--home", str(home), "--root", f"cursor={root}"]
    first = run([*BACKSCROLL, *places, "sync"], accept=(0, 3))
    yield Figure(
        key="cursor sync",
        what="Cursor 500 MB, first sync",
        value=first.wall,
        unit="s",
        wanted=5,
        processor=first.processor,
    )
    with History(roots=[NamedRoot("cursor", root)], home=home) as history:
        history.sync()
        nothing = best(history.sync, runs=7)
        more = min((_one_more(history, root) for _ in range(_MORE)), key=lambda took: took[0])
    for key, what, wall, processor, wanted in (
        ("cursor refresh", "Cursor 500 MB, nothing new, in process", nothing.wall, nothing.processor, 100),
        ("cursor append", "Cursor 500 MB, one bubble more to found, in process", *more, 300),
    ):
        yield lasted(key, what, wall, processor=processor, wanted=wanted)


def _one_more(history: History, root: Path) -> tuple[float, float]:
    word = f"zeppelin{uuid4().hex}"
    _say(root / "User/globalStorage/state.vscdb", word)

    def read() -> None:
        history.sync()
        if not history.search_sessions(word).data:
            raise RuntimeError("a bubble was added and is not found")

    took = timed(read)
    return took.wall, took.processor


def _say(path: Path, text: str) -> None:
    """Add a bubble to a session of middling length, as Cursor does: in its row, its header, the composer."""
    with closing(sqlite3.connect(path)) as db, db:
        rows = db.execute(
            "select key, value from cursorDiskKV where key >= 'composerData:' and key < 'composerData;'"
            " order by length(value)"
        ).fetchall()
        key, value = rows[len(rows) // 2]
        composer = json.loads(value)
        headers = composer["fullConversationHeadersOnly"]
        old = f"bubbleId:{composer['composerId']}:{headers[0]['bubbleId']}"
        bubble = json.loads(db.execute("select value from cursorDiskKV where key = ?", [old]).fetchone()[0])
        bubble["bubbleId"], bubble["text"] = str(uuid4()), text
        composer["fullConversationHeadersOnly"] = [*headers, {**headers[0], "bubbleId": bubble["bubbleId"]}]
        composer["lastUpdatedAt"] = composer.get("lastUpdatedAt", 0) + 1000
        new = f"bubbleId:{composer['composerId']}:{bubble['bubbleId']}"
        db.execute("insert into cursorDiskKV (key, value) values (?, ?)", [new, json.dumps(bubble)])
        db.execute("update cursorDiskKV set value = ? where key = ?", [json.dumps(composer), key])
        db.execute(
            "update composerHeaders set lastUpdatedAt = lastUpdatedAt + 1000 where composerId = ?",
            [composer["composerId"]],
        )
