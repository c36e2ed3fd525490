"""The original record of a message, and exports of a session."""

import json
from collections.abc import AsyncIterator, Generator, Iterable
from typing import get_args
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from backscroll.errors import DataNotFoundError, UsageError
from backscroll.history.history import History
from backscroll.model.export import FORMATS, Format
from backscroll.model.session import SessionSummary
from backscroll.model.text import escape_json
from backscroll.render.html.highlighting import highlight_code
from backscroll.render.session_header import file_name
from backscroll.web.pages.session import session_of
from backscroll.web.served_history import served_history
from backscroll.web.templating import render
from backscroll.web.transcript_window import read_highlighted
from backscroll.workers import WorkerPool

MAX_SHOWN_CHARS = 2_000_000
CHUNK_BYTES = 64 * 1024  # of a download
_MEDIA_TYPES: dict[Format, str] = {
    "md": "text/markdown",
    "html": "text/html",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "txt": "text/plain",
}
assert set(_MEDIA_TYPES) == set(get_args(Format))


def record_page(history: History, request: Request) -> Response:
    """Return the line or row that a message was parsed from, and where it was read."""
    summary = session_of(history, request)
    position = history.transcript.find_message(summary, request.path_params["message"])
    message = history.transcript.message_at(summary, position)
    if message is None:
        raise DataNotFoundError(f"{summary.ref} has no message {position}.", summary.ref)
    records = history.transcript.records(summary)
    found = [("Record", message.origin, records.of(message))]
    if (result := records.result_of(message)) is not None:
        found.append(("Result", result[1], result[0]))
    return render(
        request,
        "record.html",
        summary=summary,
        position=position,
        message=message,
        records=[(label, origin, *_formatted(record)) for label, origin, record in found],
        total=history.transcript.count(summary),
    )


def highlighted_message(history: History, request: Request) -> Response:
    """Return a message with highlighted code. The page of a session loads it when a call is opened."""
    summary = session_of(history, request)
    position = history.transcript.find_message(summary, request.path_params["message"])
    return HTMLResponse(read_highlighted(history, summary, position))


def _formatted(record: bytes | None) -> tuple[str | None, str, int]:
    """Return a record as text, as highlighted HTML if it is short JSON, and its size in bytes."""
    if record is None:
        return None, "", 0
    text = record.decode("utf-8", "replace")
    try:
        document = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
        text = escape_json(document.encode("utf-8", "backslashreplace")).decode()
    except ValueError:
        return text[:MAX_SHOWN_CHARS], "", len(record)
    return text[:MAX_SHOWN_CHARS], highlight_code(text, "json"), len(record)


def image_file(history: History, request: Request) -> Response:
    """Return an image of a message."""
    summary = session_of(history, request)
    position = history.transcript.find_message(summary, request.path_params["message"])
    images = history.transcript.images(summary, position)
    number = request.path_params["number"]
    image = images[number] if number < len(images) else None
    if image is None:
        raise DataNotFoundError(
            f"Image {number} of message {position} of {summary.ref} is not available.", summary.ref
        )
    media_type, content = image
    headers = {"Cache-Control": "private, max-age=86400", "Content-Security-Policy": "sandbox"}
    return Response(content, media_type=media_type, headers=headers)


async def export_file(request: Request) -> Response:
    """Return a session as a file to download, which starts at once.

    A thread of its own writes it, one chunk at a time, so that a slow client does not block pages.
    """
    worker = WorkerPool(served_history(request).open_history)
    try:
        summary, format_, chunks = await worker.run(lambda history: _export(history, request))
        first = await worker.run(lambda _: next(chunks, b""))  # an error before it becomes a page
    except BaseException:
        worker.close()
        raise

    async def content() -> AsyncIterator[bytes]:
        chunk = first
        try:
            while chunk:
                yield chunk
                chunk = await worker.run(lambda _: next(chunks, b""))
        finally:
            worker.submit(lambda _: chunks.close())
            worker.close()

    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(file_name(summary, format_))}",
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    return StreamingResponse(content(), media_type=_MEDIA_TYPES[format_], headers=headers)


def _export(history: History, request: Request) -> tuple[SessionSummary, Format, Generator[bytes]]:
    summary, format_ = _exported_session(history, request)
    return summary, format_, _chunks(history.exports.stream(summary, format_))


def _chunks(texts: Iterable[str]) -> Generator[bytes]:
    """Yield the first text as it is, so that the download starts at once, then larger chunks."""
    pending = bytearray()
    size = 1
    for text in texts:
        pending += text.encode("utf-8", "replace")
        if len(pending) >= size:
            yield bytes(pending)
            pending.clear()
            size = CHUNK_BYTES
    if pending:
        yield bytes(pending)


def _exported_session(history: History, request: Request) -> tuple[SessionSummary, Format]:
    given = request.path_params["format"]
    for format_ in FORMATS:
        if format_ == given:
            return session_of(history, request), format_
    raise UsageError(f"{given!r} is not a format. Use one of: {', '.join(FORMATS)}.")
