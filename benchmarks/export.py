"""What it takes to write a whole history as pages, and to look for secrets in it."""

import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from backscroll.redact.redactor import Redactor, message_strings
from benchmarks.figures import Figure
from benchmarks.stage import Stage

__all__ = ["figures"]

_SAMPLE = 200  # sessions that are looked through for secrets


def figures(stage: Stage) -> Iterator[Figure]:
    """Pages per thousand sessions, the memory it takes, and the speed of looking for secrets."""
    with stage.history() as history:
        sessions = history.all_sessions()
        messages = [
            m for summary in sessions[:_SAMPLE] for m in history._stores.archive.messages.of_session(summary)
        ]
    with TemporaryDirectory() as folder:
        ran = stage.command(
            "export", "--all", "--no-sync", "--format", "html", "-o", str(Path(folder, "pages")), memory=True
        )
    thousand = 1000 / len(sessions)
    yield Figure(
        key="export-html",
        what="1,000 sessions as pages",
        value=ran.wall * thousand,
        unit="s",
        wanted=60,
        processor=ran.processor * thousand,
    )
    yield Figure(key="export-memory", what="memory for it", value=ran.memory / 1e6, unit="MB", wanted=300)
    size = sum(len(text) for message in messages for _, text in message_strings(message))
    began = time.process_time()
    Redactor().learn(messages)
    took = time.process_time() - began
    yield Figure(
        key="secrets",
        what="looking for secrets",
        value=size / 1e6 / took,
        unit="MB/s",
        wanted=20,
        more_is_better=True,
        processor=took,
    )
