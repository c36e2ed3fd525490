"""Find the secrets in sessions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from backscroll.export.write_files import Progress, work_units
from backscroll.model import SessionSummary
from backscroll.model.export import FoundSecret, SecretCategory
from backscroll.redact.redactor import Redactor

if TYPE_CHECKING:
    from backscroll.archive import Archive

__all__ = ["find_secrets"]


def find_secrets(
    archive: "Archive",
    summaries: Sequence[SessionSummary],
    kinds: Sequence[SecretCategory],
    progress: Progress | None = None,
) -> list[FoundSecret]:
    """Return every secret with its kind and places. The first pass finds secrets, the second their places."""
    redactor = Redactor(kinds)
    total, done = 2 * sum(map(work_units, summaries)), 0
    for is_second_pass in (False, True):
        for summary in summaries:
            messages = archive.messages.of_session(summary)
            if not is_second_pass:
                redactor.scan(messages)
            elif redactor.has_secrets:
                redactor.redact_summary(summary)
                for position, message in enumerate(messages):
                    redactor.redact_message(message, summary.ref, position)
            done += work_units(summary)
            if progress is not None:
                progress(done, total)
    return redactor.found_secrets()
