"""Which secrets a history holds, without saying them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from backscroll.export.write_files import Progress, weight
from backscroll.model import SessionSummary
from backscroll.model.redaction import FoundSecret, SecretCategory
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
    """Every secret with its kind and all its places: first what is one, then where else it stands."""
    redactor = Redactor(kinds)
    total, done = 2 * sum(map(weight, summaries)), 0
    for is_learned in (False, True):
        for summary in summaries:
            messages = archive.messages.of_session(summary)
            if not is_learned:
                redactor.scan(messages)
            elif redactor.has_secrets:
                redactor.redact_summary(summary)
                for position, message in enumerate(messages):
                    redactor.redact_message(message, summary.ref, position)
            done += weight(summary)
            if progress is not None:
                progress(done, total)
    return redactor.found_secrets()
