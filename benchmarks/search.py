"""What searching costs: ``python -m benchmarks.search [MESSAGES]``.

The messages are those of a made history, taken again with other session numbers
until there are enough of them; every tool's output gets an id of its own, as
real ones have, so that the dictionary grows with the history.
"""

import random
import re
import shutil
import statistics
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from backscroll.index import Document, Index, exact, parse, regex
from backscroll.index.snippet import snippet
from backscroll.index.spans import spans_of
from backscroll.ingest.indexing import searchable
from backscroll.model import fold
from backscroll.sources import named
from backscroll.testing import claude_code
from benchmarks.figures import say
from benchmarks.histories import FOLDER, MB, made

MESSAGES = 300_000
_RUNS = 3
_QUERIES = 150
_COMMIT = 100_000  # messages


def documents() -> list[Document]:
    """Every message of a history of a thousand sessions."""
    kept = FOLDER / "documents.msgpack"
    if kept.exists():
        return msgspec.msgpack.decode(kept.read_bytes(), type=list[Document])
    root = made("claude", lambda folder: claude_code.history(folder, sessions=1000, seed=1))
    source = named("claude-code")
    found: list[Document] = []
    readings = (reading for unit in source.units(root) for reading in fold(source.read(unit)).readings)
    for number, reading in enumerate(readings):
        workspace = reading.closing.workspace
        for position, message in enumerate(reading.messages):
            tool, at = message.tool, message.timestamp
            found.append(
                Document(
                    session=number,
                    position=position,
                    role=message.role,
                    kind=message.kind,
                    source=source.name,
                    at=int(at.timestamp() * 1000) if at else None,
                    text=searchable(message),
                    tool=tool.name if tool else None,
                    model=message.model,
                    branch=message.git_branch,
                    workspace_hash=workspace.hash if workspace else "unknown",
                    workspace_name=workspace.name if workspace else None,
                    paths=tuple(edit.path for edit in tool.edits) if tool else (),
                    is_error=tool is not None and tool.is_error,
                    is_edit=bool(tool and tool.edits),
                )
            )
    kept.write_bytes(msgspec.msgpack.encode(found))
    return found


def many(some: list[Document], number: int) -> Iterator[Document]:
    sessions = some[-1].session + 1
    rng = random.Random(1)
    for place in range(number):
        lap, within = divmod(place, len(some))
        document = some[within]
        text = document.text
        if document.role == "tool":
            text = f"{text}\n{rng.getrandbits(48):012x}"
        yield msgspec.structs.replace(document, session=document.session + lap * sessions, text=text)


def write(index: Index, some: list[Document], number: int) -> None:
    stream = many(some, number)
    size = sum(len(one.text.encode("utf-8", "replace")) for one in some) * number / len(some)
    start, cpu = time.perf_counter(), time.process_time()
    with index.writer() as writer:
        assert writer is not None
        while batch := list(islice(stream, _COMMIT)):
            writer.add(batch)
            writer.commit(str(number))
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    on_disk = sum(path.stat().st_size for path in index.folder.rglob("*") if path.is_file())
    say(f"{number:,} messages, {size / MB:,.0f} MB of text indexed", f"{size / MB / wall:,.0f} MB/s", "-")
    say("the same, by the processor's clock", f"{size / MB / cpu:,.0f} MB/s", "-")
    say("size of the index to the text", f"{on_disk / size:.2f}", "-")


def measure(index: Index, name: str, queries: list[str], texts: list[str]) -> None:
    """Pages of twenty with snippets, counted; each query as fast as when least disturbed."""
    for by in ("session", "message"):
        best = dict.fromkeys(queries, float("inf"))
        for _ in range(_RUNS):
            for query in queries:
                start = time.perf_counter()
                parsed = parse(query)
                hits = index.search(parsed, limit=20, by="session" if by == "session" else "message")
                for hit in hits.hits:
                    text = texts[hit.position % len(texts)]
                    snippet(text, spans_of(text, parsed))
                best[query] = min(best[query], (time.perf_counter() - start) * 1000)
        times = sorted(best.values())
        p50, p95 = statistics.median(times), times[int(len(times) * 0.95)]
        say(f"{name}, by {by}: p50, p95", f"{p50:.1f}, {p95:.1f} ms", "15 ms")


def search(index: Index, some: list[Document]) -> None:
    rng = random.Random(2)
    texts = [one.text for one in some]
    met = [word for text in rng.sample(texts, 4000) for word in re.findall("[a-z]{3,}", text.lower())[:200]]
    asked = [word for word in met if not parse(word).words[0].is_stop_word]

    def words(number: int) -> list[str]:
        return list({" ".join(rng.sample(asked, number)) for _ in range(_QUERIES)})

    for number, name in ((1, "one word"), (2, "two words"), (3, "three words")):
        measure(index, name, words(number), texts)
    measure(index, "two words and a role", [f"{pair} role:user" for pair in words(2)], texts)
    measure(index, "one word and a time", [f"{word} since:2026-08" for word in words(1)], texts)
    measure(
        index,
        "two words, a workspace and a tool",
        [f"{w} workspace:ferry tool:Bash" for w in words(2)],
        texts,
    )
    measure(index, "a phrase of two words", [f'"{pair}"' for pair in words(2)], texts)
    measure(index, "a prefix of four letters", [f"{word[:4]}*" for word in words(1)], texts)
    questions = [f"why did we {three} in the end?" for three in words(3)]
    measure(index, "a question of nine words", questions, texts)


def scan(index: Index) -> None:
    for pattern in (exact("ferr"), exact("abc12"), exact("self.the("), regex(r"wyn\w+zet"), regex(r"\d+")):
        start = time.perf_counter()
        found = sum(1 for _ in islice(index.candidates(pattern), 500))
        took = (time.perf_counter() - start) * 1000
        say(f"candidates for {pattern.text}: the first {found}", f"{took:.0f} ms", "500 ms with reading")


def append(index: Index, some: list[Document]) -> None:
    times = []
    for number in range(25):
        one = msgspec.structs.replace(some[0], session=10_000_000 + number, text=f"appended{number} now")
        start = time.perf_counter()
        index.write([one], watermark=str(number))
        assert index.search(parse(f"appended{number}"), limit=1).total == 1
        times.append((time.perf_counter() - start) * 1000)
    times.sort()
    say("one more message to found: p50, p95", f"{times[12]:.0f}, {times[23]:.0f} ms", "50 ms")


def main(number: int) -> None:
    some = documents()
    folder = FOLDER / f"index-{number}"
    shutil.rmtree(folder, ignore_errors=True)
    index = Index(folder)
    index.rebuild()
    write(index, some, number)
    start = time.perf_counter()
    index = Index(Path(folder))
    index.search(parse("ferry"), limit=20)
    say("opened and searched for the first time", f"{(time.perf_counter() - start) * 1000:.0f} ms", "-")
    search(index, some)
    scan(index)
    append(index, some)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else MESSAGES)
