"""Build the entry of a commit from its material, without a language model, and print it as Markdown."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, tzinfo
from itertools import groupby

from backscroll.highlights.sentences import information_score, is_acknowledgement, is_dropped, is_reasoned
from backscroll.journal.material import Exchange, Material, exchanges
from backscroll.journal.points import (
    Point,
    conversation_points,
    failure_points,
    outcome,
    passed_checks,
    select,
    shortened,
)
from backscroll.model.journal import SECTION_TITLES, JournalEntry, Quote, SectionName
from backscroll.model.session import SessionSummary
from backscroll.model.text import one_line, pluralize
from backscroll.render.humanize import short_id
from backscroll.render.markdown import code_span
from backscroll.render.tool_calls import path_params

_MAX_TITLE_CHARS = 120
_MAX_PROMPT_CHARS = 700
_MAX_DISCUSSION = 14  # quotes
_MAX_REMAINING_SENTENCES = 2  # of one reply, in the discussion
_MAX_FILES = 20
_MAX_READ_FILES = 8
_MAX_SYMBOLS = 8
_SYMBOL = re.compile(
    r"^\s*(?:export\s+|default\s+|pub(?:\([a-z]+\))?\s+|public\s+|private\s+|static\s+|async\s+|abstract\s+)*"
    r"(?:def|class|fn|func|function|struct|enum|trait|interface|type|create table(?: if not exists)?)\s+"
    r"(?:\([^)]*\)\s*)?([A-Za-z_]\w*)",
    re.IGNORECASE,
)
# Lines at the end of a message that name authors or the tool.
_TRAILER = re.compile(r"[A-Z][\w-]*-by: .+|\W*Generated with |Change-Id: ", re.IGNORECASE)
_TEST_NAME = re.compile(r"^test|_test$|^it_|^should_", re.IGNORECASE)
_CODE = re.compile(r"(`+)(?:(?!\1).)+\1", re.DOTALL)
_HEADING = re.compile(r"^#{1,3}(?=\s)", re.MULTILINE)
_HTML = re.compile(r"<(?=[A-Za-z/!?])")


def build_entry(material: Material, zone: tzinfo | None = None) -> JournalEntry:
    """Return the entry of a commit. Every statement is a quote, or a fact of the commit or of a command."""
    at = datetime.fromtimestamp(material.commit.authored_at, UTC)
    day = at.astimezone(zone).date()
    talk = exchanges(material.turns)
    used: set[str] = set()
    result = outcome(talk)
    if result is not None and not is_reasoned(result.text) and not is_dropped(result.text):
        used.add(result.text)  # a decision is quoted again, with what belongs to it
    points = [*failure_points(talk, used), *conversation_points(talk, used)]
    quotes: list[Quote] = []
    sections: dict[SectionName, str] = {}

    def put(name: SectionName, text: str) -> None:
        if text.strip():
            sections[name] = text

    put("summary", "\n\n".join(_summary(material, talk, result, quotes, day, zone)))
    for name in ("synopsis", "accomplishments", "frustrations", "decisions", "open"):
        chosen = select(points, name)
        quotes += [quote for point in chosen for quote in point.quotes]
        items = [_item(point, day, zone) for point in chosen]
        if name == "synopsis":
            items += _symbols(material)
        if name == "accomplishments":
            items += [
                f"Passed: {code_span(one_line(run.command, 100))}, {text}"
                for run, text in passed_checks(talk)
            ]
        put(name, bullet_list(items))
    put("discussion", "\n>\n".join(_discussion(talk, quotes, used, day, zone)))
    put("files", _files_section(material))
    put("commit", _commit_section(material, zone))
    return JournalEntry(
        sha=material.commit.sha,
        patch_id=material.patch_id,
        subject=material.commit.subject,
        at=at,
        sections={name: sections[name] for name in SECTION_TITLES if name in sections},
        quotes=tuple(dict.fromkeys(quotes)),
    )


def _item(point: Point, day: date, zone: tzinfo | None) -> str:
    if point.is_dialogue:
        first, *rest = _by_message(point.quotes)
        label = f"{point.label}: " if point.label else ""
        lines = [f"{label}{inline_quotes(first, day, zone)}"]
        return "\n".join([*lines, *(f"  - {inline_quotes(group, day, zone)}" for group in rest)])
    said = inline_quotes(point.quotes, day, zone)
    label = f"{point.label}: " if point.label and said and not point.label.endswith(".") else point.label
    if point.details and point.section == "frustrations":
        label = label.removesuffix(": ")
        return ". ".join(filter(None, (label, said.removesuffix("."), *point.details)))
    return " ".join(filter(None, (label.strip(), said, *point.details)))


def _by_message(quotes: Sequence[Quote]) -> list[list[Quote]]:
    grouped = groupby(quotes, key=lambda quote: (quote.session_ref, quote.position))
    return [list(group) for _, group in grouped]


def _summary(
    material: Material,
    talk: Sequence[Exchange],
    result: Quote | None,
    quotes: list[Quote],
    day: date,
    zone: tzinfo | None,
) -> Iterator[str]:
    """Yield the body of the commit message, the topics of the sessions, and what came out."""
    lines = material.commit.message.strip().splitlines()[1:]
    body = "\n".join(line for line in lines if not _TRAILER.match(line)).strip()
    if body:
        yield escape_html(body)
    # The title of a session describes its start; a later commit may be about something else.
    started = {turn.session.ref for turn in material.turns if turn.is_start}
    titles = dict.fromkeys(
        one_line(session.title, _MAX_TITLE_CHARS)
        for session in material.sessions
        if session.title and session.ref in started
    )
    topics = [title for title in titles if title.casefold() != material.commit.subject.casefold()]
    if topics:
        yield escape_html(f"{'Topics' if len(topics) > 1 else 'Topic'}: {'; '.join(topics)}")
    if result is not None:
        quotes.append(result)
        yield f"Outcome: {inline_quotes([result], day, zone)}"


def _symbols(material: Material) -> list[str]:
    """Return what the commit defines, by file."""
    items = []
    for change in material.changes:
        names = [
            found[1]
            for line in change.added
            if (found := _SYMBOL.match(line.decode("utf-8", "replace"))) is not None
        ]
        tests = [name for name in names if _TEST_NAME.search(name)]
        others = list(dict.fromkeys(name for name in names if name not in tests))
        parts = [code_span(name) for name in others[:_MAX_SYMBOLS]]
        if len(others) > _MAX_SYMBOLS:
            parts.append(f"{len(others) - _MAX_SYMBOLS} more")
        if tests:
            parts.append(pluralize(len(tests), "test"))
        if parts:
            items.append(f"{code_span(change.path)} defines {', '.join(parts)}")
    return items[:_MAX_FILES]


def _discussion(
    talk: Sequence[Exchange], quotes: list[Quote], used: set[str], day: date, zone: tzinfo | None
) -> Iterator[str]:
    """Yield the prompts and replies that no other section quotes."""
    found: list[tuple[float, Quote]] = []
    quoted = {(quote.session_ref, quote.position): quote.text for quote in quotes if quote.speaker == "user"}
    for exchange in talk:
        rest = list(_remaining(exchange, used))
        prompt = exchange.prompt
        if prompt is not None:
            quote = prompt.quote(shortened(prompt.text, _MAX_PROMPT_CHARS))
            is_known = quoted.get((quote.session_ref, quote.position)) == quote.text
            if not is_known or rest:
                found.append((3.0 if exchange.is_first else 2.0, quote))
        found += rest
    limit = sorted((weight for weight, _ in found), reverse=True)[:_MAX_DISCUSSION]
    count = 0
    for weight, quote in found:
        if weight >= limit[-1] and count < _MAX_DISCUSSION:
            count += 1
            quotes.append(quote)
            yield quote_block(quote, day, zone)


def _remaining(exchange: Exchange, used: set[str]) -> Iterator[tuple[float, Quote]]:
    """Yield informative sentences of the assistant that no section quotes, with their weight."""
    for statement in exchange.answers:
        rest = [
            s
            for s in statement.sentences
            if s not in used and information_score(s) and not is_acknowledgement(s)
        ]
        best = sorted(rest, key=lambda s: -information_score(s))[:_MAX_REMAINING_SENTENCES]
        for sentence in (s for s in rest if s in best):
            yield 1 + 0.2 * information_score(sentence), statement.quote(sentence)


def _files_section(material: Material) -> str:
    """Return the files of the commit, and those that the conversation read besides."""
    changed = {size.path for size in material.sizes}
    items = []
    for size in material.sizes[:_MAX_FILES]:
        counts = (
            f"+{size.added:,} −{size.removed:,}"
            if size.added is not None and size.removed is not None
            else "binary"
        )
        items.append(f"{code_span(size.path)} ({counts})")
    if len(material.sizes) > _MAX_FILES:
        items.append(f"{len(material.sizes) - _MAX_FILES:,} more")
    read = _read_files(material, changed)
    if read:
        items.append(f"Read: {', '.join(code_span(path) for path in read)}")
    return bullet_list(items)


def _read_files(material: Material, changed: set[str]) -> list[str]:
    """Return files in the workspaces that calls name and the commit does not change."""
    found: dict[str, None] = {}
    for turn in material.turns:
        root = (turn.session.workspace_path or "").rstrip("/")
        for part in turn.parts:
            tool = part.message.tool
            if tool is None or tool.edits or not root:
                continue
            for path in path_params(tool):
                if path.startswith(f"{root}/"):
                    found[path.removeprefix(f"{root}/")] = None
    return [path for path in found if path not in changed][:_MAX_READ_FILES]


def _commit_section(material: Material, zone: tzinfo | None) -> str:
    """Return hash, author, time, size and sessions."""
    commit = material.commit
    at = datetime.fromtimestamp(commit.authored_at, UTC).astimezone(zone)
    added = sum(size.added or 0 for size in material.sizes)
    removed = sum(size.removed or 0 for size in material.sizes)
    branch = f" on {code_span(material.branch)}" if material.branch else ""
    items = [
        f"{code_span(commit.sha)} by {escape_html(commit.author)}, {at:%Y-%m-%d %H:%M}{branch}",
        f"{pluralize(len(material.sizes), 'file')} changed, +{added:,} −{removed:,}",
    ]
    for session in material.sessions:
        title = escape_html(one_line(session.title or session.first_message_preview or "", 80))
        models = ", ".join(session.models)
        start = short_time(session.created_at, at.date(), zone)
        facts = ", ".join(filter(None, (models, start)))
        items.append(f"Session {code_span(_short_ref(session))} {title}" + (f" ({facts})" if facts else ""))
    return bullet_list(items)


def _short_ref(session: SessionSummary) -> str:
    return f"{session.ref.partition(':')[0]}:{short_id(session.id)}"


def entry_text(entry: JournalEntry, zone: tzinfo | None) -> str:
    """Return an entry with its headings."""
    heading = f"## {entry.at.astimezone(zone):%H:%M} {escape_html(' '.join(entry.subject.split()))}"
    parts = [f"### {SECTION_TITLES[name]}\n\n{_contained(text)}" for name, text in entry.sections.items()]
    if entry.model is not None:
        parts.append(f"Written by {escape_html(entry.model)}; every quote was checked.")
    return "\n\n".join([heading, *parts]) + "\n"


def _contained(text: str) -> str:
    """Return the text of a section without headings of its level and without markers."""
    text = _HEADING.sub("####", text.strip())
    return text.replace("<!-- backscroll:", "<\\!-- backscroll:")


def short_time(at: datetime | None, day: date, zone: tzinfo | None) -> str:
    """Return the time of day, with the date if it is another day; empty if the time is unknown."""
    if at is None:
        return ""
    local = at.astimezone(zone)
    return f"{local:%H:%M}" if local.date() == day else f"{local:%Y-%m-%d %H:%M}"


def escape_html(text: str) -> str:
    """Escape HTML tags and comments outside of code, so that a quote cannot change the page around it."""
    parts: list[str] = []
    end = 0
    for code in _CODE.finditer(text):
        parts += [_HTML.sub(r"\\<", text[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, _HTML.sub(r"\\<", text[end:])]).replace("<!--", "<\\!--")


def inline_quotes(quotes: Sequence[Quote], day: date, zone: tzinfo | None) -> str:
    """Return quotes in one line, each group with its speaker and time."""
    parts: list[str] = []
    for group in _by_message(quotes):
        texts = [f"“{escape_html(' '.join(quote.text.split()))}”" for quote in group]
        by = ", ".join(filter(None, (group[0].speaker, short_time(group[0].at, day, zone))))
        parts.append(f"{' … '.join(texts)} ({by})")
    return " ".join(parts)


def quote_block(quote: Quote, day: date, zone: tzinfo | None) -> str:
    """Return a quote as a block with its speaker and time."""
    by = ", ".join(filter(None, (f"**{quote.speaker.capitalize()}**", short_time(quote.at, day, zone))))
    lines = escape_html(f"{by}: {quote.text}").splitlines()
    return "\n".join(f"> {line}".rstrip() for line in lines)


def bullet_list(items: Iterable[str]) -> str:
    """Return a Markdown list."""
    return "\n".join(f"- {item}" for item in items)
