"""Export of sessions: stream them in any format, write them to files, find the secrets in them."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from backscroll.archive.archive import Archive
from backscroll.errors import DestinationError
from backscroll.model.export import Format, FoundSecret, SecretCategory
from backscroll.model.message import Message
from backscroll.model.session import SessionSummary
from backscroll.model.sync import Progress
from backscroll.redact import Redactor
from backscroll.render.html.pages import index_page
from backscroll.render.json import json_chunks, json_lines
from backscroll.render.markdown import markdown
from backscroll.render.plain_text import plain_text
from backscroll.render.session_header import file_names
from backscroll.render.turns import Subagent, TranscriptItem, transcript_items
from backscroll.stores.lookup import check_choice
from backscroll.stores.stores import Stores

INDEX_FILE = "index.html"

Stream = Callable[[SessionSummary], Iterator[str]]


class Exported(msgspec.Struct, frozen=True):
    """Files that an export wrote."""

    files: tuple[Path, ...]
    index: Path | None = None  # the index page, for HTML
    kept: int = 0  # number of existing files that were skipped


class Exports:
    """Sessions as files, and the secrets in them."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def stream(
        self,
        summary: SessionSummary,
        format: Format = "md",
        *,
        redactor: Redactor | None = None,
        everything: bool = False,
    ) -> Iterator[str]:
        """Stream a session in a format."""
        check_choice("format", format, Format)
        exporter = Exporter(self._stores.archive, format, redactor, everything=everything)
        exporter.learn([summary])
        return exporter.stream(summary)

    def write_files(
        self,
        summaries: Sequence[SessionSummary],
        folder: Path,
        format: Format = "md",
        *,
        redactor: Redactor | None = None,
        everything: bool = False,
        force: bool = False,
        missing: bool = False,
        progress: Progress | None = None,
    ) -> Exported:
        """Write one file per session into a folder, and an index page for HTML.

        Raises `DestinationError` before anything is written if a file exists, unless ``force`` replaces it or
        ``missing`` skips it.
        """
        check_choice("format", format, Format)
        exporter = Exporter(self._stores.archive, format, redactor, everything=everything)
        scanning = writing = progress
        if redactor is not None and progress is not None:
            scanning, writing = (
                lambda done, total: progress(done, 2 * total),
                lambda done, total: progress(done + total, 2 * total),
            )
        exporter.learn(summaries, scanning)
        return write_files(
            [exporter.redacted(summary) for summary in summaries],
            partial(exporter.stream, index_file=INDEX_FILE),
            folder,
            format,
            force=force,
            missing=missing,
            progress=writing,
        )

    @staticmethod
    def write_file(chunks: Iterable[str], path: Path, *, force: bool = False) -> Path:
        """Write one exported session. Raises `DestinationError` if the file exists, unless ``force``.

        The folder must exist.
        """
        _check_parent(path)
        _existing_files([path], force)
        _write(chunks, path)
        return path

    def find_secrets(
        self,
        summaries: Sequence[SessionSummary],
        *,
        kinds: Sequence[SecretCategory] = ("secrets",),
        progress: Progress | None = None,
    ) -> list[FoundSecret]:
        """Return the keys, tokens and passwords in sessions: kind, hint and places, never the secret.

        The first pass finds secrets, the second their places.
        """
        redactor = Redactor(kinds)
        total, done = 2 * sum(map(_work_units, summaries)), 0
        for is_second_pass in (False, True):
            for summary in summaries:
                messages = self._stores.archive.messages.of_session(summary)
                if not is_second_pass:
                    redactor.scan(messages)
                elif redactor.has_secrets:
                    redactor.redact_summary(summary)
                    for position, message in enumerate(messages):
                        redactor.redact_message(message, summary.ref, position)
                done += _work_units(summary)
                if progress is not None:
                    progress(done, total)
        return redactor.found_secrets()


class Exporter:
    """Exports sessions of an archive in one format, with or without redaction."""

    def __init__(
        self, archive: Archive, format_: Format, redactor: Redactor | None, *, everything: bool = False
    ) -> None:
        self._archive = archive
        self._format = format_
        self._redactor = redactor
        self._everything = everything

    def learn(self, summaries: Sequence[SessionSummary], progress: Progress | None = None) -> None:
        """Scan sessions and their subagents for secrets. Call this before `stream`.

        For a subagent, the whole session is scanned: it can name a secret that the subagent uses.
        """
        if self._redactor is None:
            return
        total, done = sum(map(_work_units, summaries)), 0
        for summary in summaries:
            for one in self._with_relatives(summary):
                self._redactor.scan(self._archive.messages.of_session(one))
            done += _work_units(summary)
            if progress is not None:
                progress(done, total)

    def _with_relatives(self, summary: SessionSummary) -> list[SessionSummary]:
        """Return a session with its subagents; for a subagent, the whole session that it belongs to."""
        if summary.parent_ref is None:
            return [summary, *(agent for agent, _ in self._agents(summary))]
        sessions = self._archive.sessions
        return list(sessions.by_ids(sessions.ids_with_subagents(summary, with_parent=True)).values())

    def stream(self, summary: SessionSummary, *, index_file: str | None = None) -> Iterator[str]:
        """Stream the text of a session. An HTML page links to the index page, if there is one."""
        render: Callable[[SessionSummary, Iterator[TranscriptItem]], Iterator[str]]
        match self._format:
            case "json":
                return json_chunks(
                    self.redacted(summary),
                    self._read(summary),
                    is_complete=self._archive.sync_state.is_complete,
                    reported_cost_usd=self._archive.reported_cost(summary),
                )
            case "jsonl":
                return json_lines(self.redacted(summary), self._read(summary))
            case "html":
                from backscroll.render.html.session import html

                render = partial(html, index_file=index_file)
            case "md":
                render = markdown
            case "txt":
                render = plain_text
        subagents = [Subagent(self.redacted(agent), call) for agent, call in self._agents(summary)]
        items = transcript_items(summary, subagents, self._read, everything=self._everything)
        return render(self.redacted(summary), items)

    def _agents(self, summary: SessionSummary) -> list[tuple[SessionSummary, str | None]]:
        return self._archive.sessions.subagents(summary) if summary.parent_ref is None else []

    def _read(self, summary: SessionSummary) -> Iterator[Message]:
        messages = self._archive.messages.of_session(summary)
        if self._redactor is None:
            return messages
        return (
            self._redactor.redact_message(message, summary.ref, position)
            for position, message in enumerate(messages)
        )

    def redacted(self, summary: SessionSummary) -> SessionSummary:
        """Return the summary with its secrets replaced."""
        return summary if self._redactor is None else self._redactor.redact_summary(summary)


def write_files(
    summaries: Sequence[SessionSummary],
    stream: Stream,
    folder: Path,
    format_: Format,
    *,
    force: bool = False,
    missing: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write a file for each session, and an index page for HTML.

    Raises `DestinationError` before anything is written if a file exists, unless ``force`` replaces it or
    ``missing`` skips it. The folder is created; the one that contains it must exist.
    """
    _check_parent(folder)
    names = file_names(summaries, format_)
    index = folder / INDEX_FILE if format_ == "html" else None
    paths = [folder / name for name in names]
    existing = _existing_files([*paths, *([index] if index is not None else [])], force, missing=missing)
    _create_folder(folder)
    total, done = sum(map(_work_units, summaries)), 0
    for summary, path in zip(summaries, paths, strict=True):
        if path not in existing:
            _write(stream(summary), path)
        done += _work_units(summary)
        if progress is not None:
            progress(done, total)
    if index is not None and index not in existing:
        _write(index_page(zip(summaries, names, strict=True)), index)
    return Exported(tuple(paths), index, len(existing - {index}))


def _existing_files(paths: list[Path], force: bool, *, missing: bool = False) -> set[Path | None]:
    """Raise if a file exists and must not be replaced. Folders and links are never replaced.

    Returns the existing files to skip.
    """
    existing: set[Path | None] = set()
    for path in paths:
        if not path.is_symlink() and not path.exists():
            continue
        if not path.is_file() or path.is_symlink():
            raise DestinationError(f"{path} is not a regular file. Choose another path.", path)
        if not force and not missing:
            skip = "--missing to skip existing files or " if len(paths) > 1 else ""
            raise DestinationError(
                f"{path} exists. Nothing was written.", path, hint=f"Use {skip}--force to replace it."
            )
        if not force:
            existing.add(path)
    return existing


def _check_parent(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise DestinationError(
            f"The folder {path.parent} does not exist. Create it, or choose another path.", path.parent
        )


def _create_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise DestinationError(f"The folder {folder} cannot be created: {error.strerror}.", folder) from error


def _write(chunks: Iterable[str], path: Path) -> None:
    """Write a file atomically."""
    part = path.with_name(f".{path.name[:100]}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.writelines(chunks)
        part.replace(path)
    except OSError as error:
        raise DestinationError(f"{path} cannot be written: {error.strerror}.", path) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _work_units(summary: SessionSummary) -> int:
    """Return the share of a session in the progress."""
    return summary.message_count + 1
