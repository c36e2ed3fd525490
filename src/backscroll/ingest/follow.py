"""One session, message by message, while it is being held."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from backscroll.archive import Archive, Key
from backscroll.model import Message, SessionSummary

__all__ = ["Said", "follow"]


class Said(Struct, frozen=True):
    """A message, new or told more of: an answer to a call, or more words."""

    position: int
    message: Message
    before: Message | None = None  # as it was told last


def follow(
    archive: Archive, summary: SessionSummary, touched: Iterable[set[Key]], *, last: int, everything: bool
) -> Iterator[Said]:
    """The last messages of a session, then those that come.

    Without ``everything`` these are the ones a person would read: no abandoned branches, no injected text.
    """
    session = summary.parent_ref.partition(":")[2] if summary.parent_ref is not None else summary.id
    known: dict[str, Message] = {}
    news = list(_news(archive, summary, known, everything))
    yield from news[len(news) - min(last, len(news)) :]
    for keys in touched:
        if (summary.platform, session) in keys:
            yield from list(_news(archive, summary, known, everything))


def _news(
    archive: Archive, summary: SessionSummary, known: dict[str, Message], everything: bool
) -> Iterator[Said]:
    for position, message in enumerate(archive.messages_of(summary)):
        before = known.get(message.id)
        if (everything or _is_read(message)) and (before is None or _has_more(message, before)):
            known[message.id] = message
            yield Said(position, message, before)


def _is_read(message: Message) -> bool:
    if not message.is_active or message.is_sidechain or message.role == "system":
        return False
    return message.role != "thinking" or bool(message.content)


def _has_more(message: Message, before: Message) -> bool:
    return message.content != before.content or message.tool != before.tool
