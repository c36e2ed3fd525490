"""From one record more in a file until it is found."""

import shutil
import time
from collections.abc import Callable, Iterator

from backscroll.archive import Archive
from backscroll.config import NamedRoot
from backscroll.history import History
from backscroll.index import Index
from backscroll.ingest.indexer import update
from backscroll.ingest.sync import sync
from backscroll.sources import named
from backscroll.testing.claude_code import Transcript
from benchmarks.figures import Figure
from benchmarks.histories import FOLDER
from benchmarks.measure import share
from benchmarks.stage import Stage

__all__ = ["figures"]

_TIMES = 20


def figures(stage: Stage) -> Iterator[Figure]:
    root = FOLDER / f"appended-{stage.scale}"
    shutil.rmtree(root, ignore_errors=True)
    transcript = Transcript("10000000-0000-4000-8000-000000000000", seed=1).user("First words")
    path = transcript.write(root)
    with stage.history(NamedRoot("claude-code", root)) as history:
        history.sync()
        archive = Archive(history.archive_path)
        index = Index(history.archive_path.with_name("index"))
        source = named("claude-code")

        def read_there() -> None:
            sync(archive, [(source, root)], paths={str(path)})
            update(archive, index)

        def append(word: str, read: Callable[[], object]) -> float:
            lines = transcript.user(word).lines()[path.stat().st_size :]
            with path.open("ab") as file:
                file.write(lines)
            start = time.perf_counter()
            read()
            _expect(history, word)
            return (time.perf_counter() - start) * 1000

        known = [append(f"zeppelin{place}", read_there) for place in range(_TIMES)]
        anywhere = [append(f"balloon{place}", history.sync) for place in range(_TIMES)]
        archive.close()
    yield Figure(
        key="append",
        what="one appended record to found, in process, p50",
        value=share(known, 0.5),
        unit="ms",
        wanted=50,
    )
    yield Figure(
        key="append-anywhere",
        what="the same by a refresh of everything",
        value=share(anywhere, 0.5),
        unit="ms",
    )


def _expect(history: History, word: str) -> None:
    found = history.search_sessions(word).data
    if not found:
        raise RuntimeError(f"{word} was appended and is not found")
