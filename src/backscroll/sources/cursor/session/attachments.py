"""What came along with a message: files, selections, images, links, rules."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from msgspec import Raw, Struct

from backscroll.model import Attachment
from backscroll.sources.cursor.database.decode import (
    UndecodableError,
    as_list,
    as_map,
    as_text,
    decode,
    decode_each,
)
from backscroll.sources.cursor.uri import file_path

__all__ = ["attachments", "inline_images", "paths"]

# The lists of a message's context, and what their items are.
_KINDS = {
    "fileSelections": "file",
    "folderSelections": "folder",
    "selections": "selection",
    "terminalSelections": "terminal",
    "terminalFiles": "terminal",
    "selectedDocs": "document",
    "selectedDocuments": "document",
    "externalLinks": "link",
    "cursorRules": "rule",
    "cursorCommands": "command",
    "selectedCommits": "commit",
    "selectedPullRequests": "pull request",
    "gitPRDiffSelections": "diff",
    "composers": "session",
    "quotes": "quote",
    "notepads": "notepad",
    "selectedImages": "image",
    "selectedVideos": "video",
    "subagentSelections": "agent",
    "browserSelections": "page",
    "uiElementSelections": "page",
    "consoleLogs": "console",
    "gitDiff": "diff",
    "gitDiffFromBranchToMain": "diff",
    "diffHistory": "diff",
    "extraContext": "context",
}
_NAMES = ("name", "filename", "title", "label", "message", "url", "sha", "commandName", "rawText", "text")
_MEDIA = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".svg": "image/svg+xml",
    ".pdf": "application/pdf",
}
_LONGEST_NAME = 200
_UNSET = (b"", b"{}", b"[]", b"null")

ImageFinder = Callable[[], Mapping[str, Path]]


class _Image(Struct):
    """An image kept inside the record; its bytes are an object of numbered numbers."""

    uuid: Any = None
    path: Any = None
    data: Raw = Raw()


def attachments(context: Raw, images: Raw, find: ImageFinder) -> tuple[Attachment, ...]:
    """Everything attached, each thing once. ``find`` tells which image files are still there."""
    if len(context) <= 2 and len(images) <= 2:
        return ()
    found: dict[tuple[str, str], Attachment] = {}
    for name, attachment in inline_images(images):
        found[("image", name or str(len(found)))] = attachment
    if len(context) > 2 and bytes(memoryview(context)[:5]) not in _UNSET:
        for key, attachment in _from_context(context, find):
            known = found.get(key)
            if known is None or (known.path is None and attachment.path is not None):
                found[key] = attachment if known is None else _joined(known, attachment)
    return tuple(found.values())


def _joined(inline: Attachment, named: Attachment) -> Attachment:
    return Attachment("image", named.name, named.media_type, inline.size or named.size, named.path)


def inline_images(images: Raw) -> Iterator[tuple[str, Attachment]]:
    """Images in the record itself, by uuid. Counting colons measures them without decoding a byte."""
    if bytes(memoryview(images)[:5]) in _UNSET:
        return
    for image in decode_each(images, _Image)[0]:
        data = bytes(image.data)
        size = data.count(b":") if data.startswith(b"{") else None
        media_type = "image/png" if data.startswith(b'{"0":137,"1":80') else None
        path = as_text(image.path)
        yield (
            as_text(image.uuid).lower(),
            Attachment("image", _last(path) or None, media_type or _media(path), size or None, path or None),
        )


def _from_context(context: Raw, find: ImageFinder) -> Iterator[tuple[tuple[str, str], Attachment]]:
    try:
        fields = as_map(decode(context, object))
    except UndecodableError:
        return
    mentions = as_map(fields.get("mentions"))
    for name, kind in _KINDS.items():
        items = as_list(fields.get(name))
        for item in items:
            yield _one(kind, item, find)
        if not items and (mentioned := mentions.get(name)):
            yield from _mentioned(kind, mentioned)


def _mentioned(kind: str, mentioned: Any) -> Iterator[tuple[tuple[str, str], Attachment]]:
    """What is only named among the mentions, by URI or uuid."""
    for name in as_map(mentioned):
        path = file_path(name)
        yield (kind, path or name), Attachment(kind, _last(path) or name[:_LONGEST_NAME], path=path or None)
    for number, _ in enumerate(as_list(mentioned)):
        yield (kind, str(number)), Attachment(kind)


def _one(kind: str, item: Any, find: ImageFinder) -> tuple[tuple[str, str], Attachment]:
    fields = as_map(item)
    path = file_path(fields.get("uri")) or as_text(fields.get("path")) or as_text(fields.get("relativePath"))
    name = as_text(item) if isinstance(item, str) else _last(path)
    if not name:
        name = next((text for key in _NAMES if (text := as_text(fields.get(key)).strip())), "")
    name = name.partition("\n")[0][:_LONGEST_NAME]
    size = None
    key = path or name
    if kind == "image":
        key = as_text(fields.get("uuid")).lower() or key
        file = find().get(key)
        size = _size(file) if file else None
    if kind in ("selection", "terminal", "quote"):
        text = as_text(fields.get("rawText")) or as_text(fields.get("text"))
        size = len(text.encode("utf-8", "replace")) or None
        key = f"{key}:{fields.get('range')}"
    return (kind, key), Attachment(kind, name or None, _media(path), size, path or None)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def paths(context: Raw) -> Iterator[str]:
    """The files a context names: signs of where the work took place."""
    if bytes(memoryview(context)[:5]) in _UNSET:
        return
    try:
        fields = as_map(decode(context, object))
    except UndecodableError:
        return
    for name in ("fileSelections", "folderSelections", "selections"):
        for item in as_list(fields.get(name)):
            if path := file_path(as_map(item).get("uri")):
                yield path


def _last(path: str) -> str:
    if "\\" in path:
        return PureWindowsPath(path).name
    return PurePosixPath(path).name


def _media(path: str) -> str | None:
    return _MEDIA.get(PurePosixPath(path).suffix.lower()) if path else None
