"""Stream a session in any format."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.export.write_files import INDEX_FILE, Exported, Progress, work_units, write_files
from backscroll.model import Message, SessionSummary
from backscroll.model.export import Format
from backscroll.redact.redactor import Redactor
from backscroll.render.json import json_chunks, json_lines
from backscroll.render.markdown import markdown
from backscroll.render.plain_text import plain_text
from backscroll.render.turns import Subagent, TranscriptItem, transcript_items

if TYPE_CHECKING:
    from backscroll.archive import Archive

__all__ = ["Exporter"]


class Exporter:
    """Exports sessions of an archive in one format, with or without redaction."""

    def __init__(
        self, archive: "Archive", format_: Format, redactor: Redactor | None, *, everything: bool = False
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
        total, done = sum(map(work_units, summaries)), 0
        for summary in summaries:
            for one in self._with_relatives(summary):
                self._redactor.scan(self._archive.messages.of_session(one))
            done += work_units(summary)
            if progress is not None:
                progress(done, total)

    def _with_relatives(self, summary: SessionSummary) -> list[SessionSummary]:
        """Return a session with its subagents; for a subagent, the whole session that it belongs to."""
        if summary.parent_ref is None:
            return [summary, *(agent for agent, _ in self._agents(summary))]
        sessions = self._archive.sessions
        return list(sessions.by_ids(sessions.ids_with_subagents(summary, with_parent=True)).values())

    def write(
        self,
        summaries: Sequence[SessionSummary],
        folder: Path,
        *,
        force: bool = False,
        missing: bool = False,
        progress: Progress | None = None,
    ) -> Exported:
        """Write a file for each session, after all were scanned for secrets."""
        if self._redactor is None or progress is None:
            halves = (progress, progress)
        else:
            halves = (
                (lambda done, total: progress(done, 2 * total)),
                (lambda done, total: progress(done + total, 2 * total)),
            )
        self.learn(summaries, halves[0])
        redacted = [self._redacted(summary) for summary in summaries]
        return write_files(
            redacted,
            self._stream_for_folder,
            folder,
            self._format,
            force=force,
            missing=missing,
            progress=halves[1],
        )

    def _stream_for_folder(self, summary: SessionSummary) -> Iterator[str]:
        return self.stream(summary, index_file=INDEX_FILE)

    def stream(self, summary: SessionSummary, *, index_file: str | None = None) -> Iterator[str]:
        """Stream the text of a session. An HTML page links to the index page, if there is one."""
        render: Callable[[SessionSummary, Iterator[TranscriptItem]], Iterator[str]]
        match self._format:
            case "json":
                return json_chunks(
                    self._redacted(summary),
                    self._read(summary),
                    is_complete=self._archive.sync_state.is_complete,
                    reported_cost_usd=self._archive.reported_cost(summary),
                )
            case "jsonl":
                return json_lines(self._redacted(summary), self._read(summary))
            case "html":
                from backscroll.render.html.session_page import html  # loads Markdown and highlighting

                render = partial(html, index_file=index_file)
            case "md":
                render = markdown
            case "txt":
                render = plain_text
        subagents = [Subagent(self._redacted(agent), call) for agent, call in self._agents(summary)]
        items = transcript_items(summary, subagents, self._read, everything=self._everything)
        return render(self._redacted(summary), items)

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

    def _redacted(self, summary: SessionSummary) -> SessionSummary:
        return summary if self._redactor is None else self._redactor.redact_summary(summary)
