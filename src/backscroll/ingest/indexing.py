"""Give the index the words it does not have yet. The archive decides what it must have."""

from collections.abc import Iterator

import msgspec

from backscroll.archive import Archive
from backscroll.index import Document, Index
from backscroll.model import Message, SessionSummary, workspace_hash

__all__ = ["searchable", "update"]

_BATCH = 200  # sessions in one commit
_encode = msgspec.json.Encoder().encode


def searchable(message: Message) -> str:
    """Everything that can be found of a message: its words, or a tool's name, arguments and result."""
    tool = message.tool
    if tool is None:
        return message.content
    asked = "\n".join(f"{name}: {_spelled(value)}" for name, value in tool.params.items())
    return "\n".join(part for part in (tool.name, asked, message.content, tool.result) if part)


def _spelled(value: object) -> str:
    return value if isinstance(value, str) else _encode(value).decode()


def update(archive: Archive, index: Index) -> bool:
    """Bring the index up to the archive. False when another process is writing it."""
    if not _belongs(index, archive):
        archive.mark_unindexed()
        with archive.alone():
            # Whoever waited for this finds it done, and throws away nothing that others are writing.
            if not _belongs(index, archive):
                index.rebuild()
                index.write((), watermark=archive.identity)
    while numbers := archive.unindexed(_BATCH):
        with index.writer(is_small=len(numbers) < 3) as writer:
            if writer is None:
                return False
            while numbers:
                writer.forget(numbers)
                for number in numbers:
                    writer.add(_documents(archive, number))
                writer.commit(archive.identity)
                archive.mark_indexed(numbers)
                numbers = archive.unindexed(_BATCH)
    return True


def _belongs(index: Index, archive: Archive) -> bool:
    return index.is_usable() and index.watermark == archive.identity


def _documents(archive: Archive, number: int) -> Iterator[Document]:
    summary = archive.by_number(number)
    if summary is None or (summary.parent_ref is not None and summary.id.startswith("inline-")):
        return  # gone, or told together with its parent
    title: str | None = summary.title
    for position, message in enumerate(archive.messages_of(summary)):
        if message.copied_from is not None:
            continue
        yield _document(summary, number, position, message, title)
        title = None


def _document(
    summary: SessionSummary, number: int, position: int, message: Message, title: str | None
) -> Document:
    tool = message.tool
    return Document(
        session=number,
        position=position,
        role=message.role,
        kind=message.kind,
        source=summary.source,
        at=int(message.timestamp.timestamp() * 1000) if message.timestamp is not None else None,
        text=searchable(message),
        title=title,
        tool=tool.name if tool else None,
        model=message.model,
        branch=message.git_branch or summary.git_branch,
        workspace_hash=workspace_hash(summary.workspace_path),
        workspace_name=summary.workspace_name,
        paths=tuple(edit.path for edit in tool.edits) if tool else (),
        is_error=message.role == "error" or (tool is not None and tool.is_error),
        is_edit=bool(tool and tool.edits),
    )
