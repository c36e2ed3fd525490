"""Tools that read and write the journal of commits."""

from typing import Any

from backscroll.mcp.call import Call
from backscroll.mcp.tools.arguments import JournalContext, JournalNote, JournalWriteEntry, absolute_path
from backscroll.mcp.tools.results import ToolAnswer, rename
from backscroll.model.journal import JournalContext as Context
from backscroll.model.journal import JournalNote as Note
from backscroll.model.journal import NoteKind
from backscroll.model.text import one_line, pluralize
from backscroll.render.journal import entry_markdown, journal_document, quote_document, result_line

MAX_MATERIAL_CHARS = 60_000
_MAX_QUOTE_CHARS = 300
_NAMES = {"session_ref": "ref", "message_index": "position"}  # as in the other tools
_SECTIONS = ("summary", "synopsis", "accomplishments", "frustrations", "decisions", "open", "discussion")


def journal_context(call: Call, arguments: JournalContext) -> ToolAnswer:
    context = call.history.journal.context(
        arguments.revision, absolute_path("repository", arguments.repository)
    )
    hints = [
        f"An entry exists in {context.path}." if context.path is not None else "The commit has no entry yet."
    ]
    if call.options.allow_writes:
        hints.append("Write it with journal_write_entry. Quotes must be verbatim.")
    document: dict[str, Any] = {
        "sha": context.entry.sha,
        "path": str(context.path) if context.path is not None else None,
        "material": context.material[:MAX_MATERIAL_CHARS],
        "sections": dict(context.entry.sections),
        "quotes": [rename(quote_document(quote), _NAMES) for quote in context.entry.quotes],
        "notes": [{"kind": note.kind, "text": note.text} for note in context.notes],
    }
    return ToolAnswer(material_text(context), document, tuple(hints))


def material_text(context: Context) -> str:
    """Return the material of an entry, the extracted entry and the user's notes as one text."""
    notes = "\n".join(_note_line(note) for note in context.notes)
    parts = [
        context.material[:MAX_MATERIAL_CHARS],
        f"# Extracted entry\n\n{entry_markdown(context.entry)}",
        f"# Notes\n\n{notes}" if notes else "",
    ]
    return "\n\n".join(filter(None, parts))


def journal_write_entry(call: Call, arguments: JournalWriteEntry) -> ToolAnswer:
    sections = {name: text for name in _SECTIONS if (text := getattr(arguments, name))}
    author = one_line(call.client, 80) if call.client else "an assistant"
    result, problems = call.history.journal.write_story(
        sections, arguments.revision, absolute_path("repository", arguments.repository), author=author
    )
    if result is None:
        lines = [f"Not verbatim: {one_line(problem.text, _MAX_QUOTE_CHARS)}" for problem in problems]
        hints = [f"Nothing was written: {pluralize(len(problems), 'quote')} not verbatim."]
        for problem in problems:
            if problem.suggestion is not None:
                lines.append(f"The conversation says: {problem.suggestion}")
        hints.append("Correct the quotes or remove the quotation marks, and call the tool again.")
        rejected = {
            "status": "rejected",
            "problems": [{"text": problem.text, "suggestion": problem.suggestion} for problem in problems],
        }
        return ToolAnswer("\n".join(lines), rejected, tuple(hints))
    written = journal_document(result)
    document: dict[str, Any] = {
        "status": "kept" if result.skipped == "edited" else "written",
        "result": written | {"quotes": [rename(quote, _NAMES) for quote in written["quotes"]]},
    }
    return ToolAnswer("", document, (result_line(result),))


def journal_add_reflection(call: Call, arguments: JournalNote) -> ToolAnswer:
    return _add_note(call, "reflection", arguments)


def journal_capture_context(call: Call, arguments: JournalNote) -> ToolAnswer:
    return _add_note(call, "context", arguments)


def _add_note(call: Call, kind: NoteKind, arguments: JournalNote) -> ToolAnswer:
    note = call.history.journal.add_note(
        kind, arguments.text, absolute_path("repository", arguments.repository)
    )
    return ToolAnswer("", {"status": "written", "path": str(note.path)}, (f"Added to {note.path}",))


def _note_line(note: Note) -> str:
    return f"- {note.kind}, {note.at:%Y-%m-%d %H:%M}: {one_line(note.text, 2000)}"
