"""HTML export of a whole history, and the secret scan that runs before a redacted export."""

import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from backscroll.redact import Redactor, _with_texts
from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.generated_histories import MB
from benchmarks.result_table import Result

_SCANNED_SESSIONS = 200


def measure(context: BenchmarkContext) -> Iterator[Result]:
    """Measure the export per 1,000 sessions, its peak memory, and the throughput of the secret scan."""
    with context.open_history() as history:
        sessions = history.all_sessions()
        messages = [
            message
            for summary in sessions[:_SCANNED_SESSIONS]
            for message in history._stores.archive.messages.of_session(summary)
        ]
    with TemporaryDirectory() as folder:
        output = str(Path(folder, "pages"))
        run = context.run_command(
            "export", "--all", "--no-sync", "--format", "html", "-o", output, sample_memory=True
        )
    per_thousand = 1000 / len(sessions)
    yield Result(
        key="export-html",
        label="HTML export of 1,000 sessions",
        value=run.wall_seconds * per_thousand,
        unit="s",
        target=60,
        cpu_seconds=run.cpu_seconds * per_thousand,
    )
    yield Result(
        key="export-memory",
        label="HTML export, peak memory",
        value=run.peak_bytes / MB,
        unit="MB",
        target=300,
    )
    texts: list[str] = []
    for message in messages:
        _with_texts(message, lambda text, _: texts.append(text) or text)
    size = sum(map(len, texts))
    start = time.process_time()
    Redactor().scan(messages)
    cpu_seconds = time.process_time() - start
    yield Result(
        key="secrets",
        label="Secret scan",
        value=size / MB / cpu_seconds,
        unit="MB/s",
        target=20,
        higher_is_better=True,
        cpu_seconds=cpu_seconds,
    )
