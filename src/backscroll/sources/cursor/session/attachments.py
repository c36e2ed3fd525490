"""Attachments of a message: files, selections, images, links, rules."""

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

__all__ = ["attached_paths", "parse_attachments"]

# Lists in the context of a message, and the kind of their items.
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
_NAME_KEYS = ("name", "filename", "title", "label", "message", "url", "sha", "commandName", "rawText", "text")
_MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".svg": "image/svg+xml",
    ".pdf": "application/pdf",
}
_MAX_NAME_CHARS = 200
_EMPTY_VALUES = (b"", b"{}", b"[]", b"null")

ImageFinder = Callable[[], Mapping[str, Path]]


class _Image(Struct):
    """Image inside the record. Its data is a JSON object from byte position to byte value."""

    uuid: Any = None
    path: Any = None
    data: Raw = Raw()


def parse_attachments(context: Raw, images: Raw, find_images: ImageFinder) -> tuple[Attachment, ...]:
    """Return all attachments without duplicates. ``find_images`` returns the existing image files."""
    if len(context) <= 2 and len(images) <= 2:
        return ()
    found: dict[tuple[str, str], Attachment] = {}
    for uuid, attachment in _inline_images(images):
        found[("image", uuid or str(len(found)))] = attachment
    if len(context) > 2 and bytes(memoryview(context)[:5]) not in _EMPTY_VALUES:
        for key, attachment in _parse_context(context, find_images):
            known = found.get(key)
            if known is None or (known.path is None and attachment.path is not None):
                found[key] = attachment if known is None else _merge_image(known, attachment)
    return tuple(found.values())


def _merge_image(inline: Attachment, named: Attachment) -> Attachment:
    return Attachment("image", named.name, named.media_type, inline.size or named.size, named.path)


def _inline_images(images: Raw) -> Iterator[tuple[str, Attachment]]:
    """Return the images in the record with their UUIDs. The number of colons is the size in bytes."""
    if bytes(memoryview(images)[:5]) in _EMPTY_VALUES:
        return
    for image in decode_each(images, _Image)[0]:
        data = bytes(image.data)
        size = data.count(b":") if data.startswith(b"{") else None
        media_type = "image/png" if data.startswith(b'{"0":137,"1":80') else None
        path = as_text(image.path)
        yield (
            as_text(image.uuid).lower(),
            Attachment(
                "image", _file_name(path) or None, media_type or _media_type(path), size or None, path or None
            ),
        )


def _parse_context(context: Raw, find_images: ImageFinder) -> Iterator[tuple[tuple[str, str], Attachment]]:
    try:
        fields = as_map(decode(context, object))
    except UndecodableError:
        return
    mentions = as_map(fields.get("mentions"))
    for name, kind in _KINDS.items():
        items = as_list(fields.get(name))
        for item in items:
            yield _parse_item(kind, item, find_images)
        if not items and (mentioned := mentions.get(name)):
            yield from _parse_mentions(kind, mentioned)


def _parse_mentions(kind: str, mentioned: Any) -> Iterator[tuple[tuple[str, str], Attachment]]:
    """Return attachments that are only mentioned, by URI or UUID."""
    for name in as_map(mentioned):
        path = file_path(name)
        yield (
            (kind, path or name),
            Attachment(kind, _file_name(path) or name[:_MAX_NAME_CHARS], path=path or None),
        )
    for index, _ in enumerate(as_list(mentioned)):
        yield (kind, str(index)), Attachment(kind)


def _parse_item(kind: str, item: Any, find_images: ImageFinder) -> tuple[tuple[str, str], Attachment]:
    fields = as_map(item)
    path = file_path(fields.get("uri")) or as_text(fields.get("path")) or as_text(fields.get("relativePath"))
    name = as_text(item) if isinstance(item, str) else _file_name(path)
    if not name:
        name = next((text for key in _NAME_KEYS if (text := as_text(fields.get(key)).strip())), "")
    name = name.partition("\n")[0][:_MAX_NAME_CHARS]
    size = None
    key = path or name
    if kind == "image":
        key = as_text(fields.get("uuid")).lower() or key
        file = find_images().get(key)
        size = _size(file) if file else None
    if kind in ("selection", "terminal", "quote"):
        text = as_text(fields.get("rawText")) or as_text(fields.get("text"))
        size = len(text.encode("utf-8", "replace")) or None
        key = f"{key}:{fields.get('range')}"
    return (kind, key), Attachment(kind, name or None, _media_type(path), size, path or None)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def attached_paths(context: Raw) -> Iterator[str]:
    """Return the paths of attached files, folders and selections, which are evidence of the workspace."""
    if bytes(memoryview(context)[:5]) in _EMPTY_VALUES:
        return
    try:
        fields = as_map(decode(context, object))
    except UndecodableError:
        return
    for name in ("fileSelections", "folderSelections", "selections"):
        for item in as_list(fields.get(name)):
            if path := file_path(as_map(item).get("uri")):
                yield path


def _file_name(path: str) -> str:
    if "\\" in path:
        return PureWindowsPath(path).name
    return PurePosixPath(path).name


def _media_type(path: str) -> str | None:
    return _MEDIA_TYPES.get(PurePosixPath(path).suffix.lower()) if path else None
