"""Messages and turns of a session."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from backscroll.errors import UsageError
from backscroll.model.message import Message
from backscroll.model.session import AgentSession, SessionSummary, Stretch
from backscroll.model.text import pluralize
from backscroll.render.turns import Subagent, SubagentEnd, SubagentStart, TranscriptItem, transcript_items
from backscroll.sources import named
from backscroll.sources.protocols import ImageFiles, RecordLookup
from backscroll.stores.stores import Stores

if TYPE_CHECKING:
    from backscroll.archive.query.originals import OriginalRecords
    from backscroll.model.search import SearchKind, SessionMatches


MAX_IMAGE_BYTES = 50_000_000  # of a file
_MAX_CANDIDATES = 10  # listed in an error
_MAX_POSITION_DIGITS = 7


class Transcript:
    """Messages and turns of a session, streamed from any position."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def messages(self, summary: SessionSummary, start: int = 0) -> Iterator[Message]:
        """Stream the messages of a session from a position on."""
        return self._stores.archive.messages.of_session(summary, start)

    def count(self, summary: SessionSummary) -> int:
        """Return the number of messages of all roles and on all branches."""
        return self._stores.archive.messages.extent(summary)[1]

    def subagents(self, summary: SessionSummary) -> list[SessionSummary]:
        """Return the subagents of a session, oldest first; for a subagent, those that it started itself."""
        return [agent for agent, _ in self._stores.archive.sessions.subagents(summary)]

    def unplaced_subagents(self, summary: SessionSummary) -> list[SessionSummary]:
        """Return the subagents that no call of the session itself started, oldest first."""
        archive = self._stores.archive
        subagents = archive.sessions.subagents(summary)
        calls = {call for _, call in subagents if call is not None}
        agents = {agent.id for agent, _ in subagents} - {summary.id}
        own = archive.messages.calls_among(summary, calls, agents) if calls else set()
        return [agent for agent, call in subagents if call not in own]

    def prompts(self, summary: SessionSummary) -> Iterator[tuple[int, Message]]:
        """Yield position and content of the user's messages on the active branch."""
        archive = self._stores.archive
        agents = [agent.id for agent in self.subagents(summary)]
        wanted = set(archive.messages.turn_starts(summary, agents))
        for position, message in enumerate(archive.messages.without_usage(summary) if wanted else ()):
            if position in wanted:
                yield position, message

    def overview(self, summary: SessionSummary, max_stretches: int) -> list[Stretch]:
        """Return the whole session in stretches of the same length, each with its counts."""
        agents = [agent.id for agent in self.subagents(summary)]
        return self._stores.archive.messages.stretches(summary, max_stretches, agents)

    def read(
        self,
        summary: SessionSummary,
        *,
        everything: bool = False,
        with_agents: bool = True,
        start: int = 0,
        turns: tuple[int, int] | None = None,
    ) -> Iterator[TranscriptItem]:
        """Stream a session in reading order, each subagent after the call that started it.

        ``everything`` includes abandoned branches and injected text. Without ``with_agents`` a subagent is
        only its start and its end. Reading starts at a position, or with the first of the ``turns`` and stops
        after the last. Turns count from 1, negative ones from the end; 0 is the text before the first prompt.
        Raises `UsageError` if there is no such turn.
        """
        archive = self._stores.archive
        subagents = [Subagent(agent, call) for agent, call in archive.sessions.subagents(summary)]
        prompts: list[int] = []
        last = None
        if start or turns is not None:
            prompts = archive.messages.turn_starts(summary, [agent.summary.id for agent in subagents])
        if turns is not None:
            first, last = _absolute_turns(turns, len(prompts))
            start = prompts[first - 1] if first else 0

        def read(session: SessionSummary) -> Iterator[Message]:
            return archive.messages.without_usage(session, start if session is summary else 0)

        items = transcript_items(
            summary,
            subagents,
            read,
            everything=everything,
            with_agents=with_agents,
            start=start,
            turn=bisect_left(prompts, start),
        )
        return items if last is None else _until_turn(items, last)

    def reported_cost(self, summary: SessionSummary) -> float | None:
        """Return the dollars that the tool reports for a session; None if it reports no total.

        The cost of a forked session does not include what the original session cost before the fork.
        """
        return self._stores.archive.reported_cost(summary)

    def message_at(self, summary: SessionSummary, position: int) -> Message | None:
        """Return one message without its token usage; None after the last one."""
        return next(self._stores.archive.messages.without_usage(summary, position), None)

    def find_message(self, summary: SessionSummary, name: str) -> int:
        """Return the position of a message named by its position (``7``, ``#7``), its id or a prefix of it.

        Raises `UsageError` if the session has no such message, or several.
        """
        name = name.removeprefix("#")
        if name.isascii() and name.isdigit() and len(name) <= _MAX_POSITION_DIGITS:
            count = self.count(summary)
            if int(name) < count:
                return int(name)
            raise UsageError(f"{summary.ref} has no message {name}. The last one is {count - 1}.")
        found = self._stores.archive.messages.find_positions(summary, name) if name else []
        if not found:
            raise UsageError(
                f"{summary.ref} has no message {name!r}.",
                hint="'backscroll show --json' prints the ids of all messages.",
            )
        if len({id_.partition(".")[0] for _, id_ in found}) > 1:
            lines = "\n".join(f"  {position}  {id_}" for position, id_ in found[:_MAX_CANDIDATES])
            more = f"\n  and {len(found) - _MAX_CANDIDATES:,} more" if len(found) > _MAX_CANDIDATES else ""
            raise UsageError(f"{name!r} matches several messages. Use a longer prefix:\n{lines}{more}")
        return found[0][0]

    def find_matches(
        self, summary: SessionSummary, query: str, *, pattern: SearchKind = "words", filter_query: str = ""
    ) -> SessionMatches:
        """Return the messages of a session and its subagents that match words or a pattern.

        Punctuation without words is exact text. A pattern ignores upper and lower case, and ``filter_query``
        has its filters. Raises `UsageError` for an invalid regular expression.
        """
        from backscroll.search.search import Search  # start-up: loads the index

        return Search(self._stores).in_session(summary, query, pattern=pattern, filter_query=filter_query)

    def records(self, summary: SessionSummary) -> OriginalRecords:
        """Return a lookup from the messages of a session to their original lines or rows."""
        source = named(summary.source)
        messages = self._stores.archive.messages
        if not isinstance(source, RecordLookup):
            return messages.original_records(summary)
        return messages.original_records(summary, source.row_keys, source.result_call_ids)

    def images(self, summary: SessionSummary, position: int) -> list[tuple[str, bytes] | None]:
        """Return media type and content of the images of a message and its result, in order.

        They are in the original record, or in a file of the tool that the record names. None stands for an
        image that is in neither, or has another type than PNG, JPEG, GIF and WebP.
        """
        from backscroll.readers.lenient_json import embedded_images  # start-up: `show` needs no json

        message = self.message_at(summary, position)
        if message is None:
            return []
        records = self.records(summary)
        result = records.result_of(message)
        stored = [records.of(message), result[0] if result is not None else None]
        embedded = [image for record in stored if record is not None for image in embedded_images(record)]
        paths = [image.path for image in message.attachments if image.kind == "image"]
        if len(embedded) >= len(paths):
            return list(embedded)
        images = [self._image_in_file(summary, path) if path else None for path in paths]
        rest = iter(embedded)
        # An image with a path is rarely embedded as well.
        for index in sorted(range(len(paths)), key=lambda index: paths[index] is not None):
            images[index] = images[index] or next(rest, None)
        return images

    def _image_in_file(self, summary: SessionSummary, path: str) -> tuple[str, bytes] | None:
        """Return an image from a file below a root of the session's source."""
        for source, root in self._stores.roots():
            if source.name != summary.source or not isinstance(source, ImageFiles):
                continue
            from backscroll.readers.lenient_json import image_type  # start-up, as above

            file = source.image_file(root, path)
            try:
                content = (
                    file.read_bytes() if file is not None and file.stat().st_size <= MAX_IMAGE_BYTES else b""
                )
            except OSError:
                continue
            if (media_type := image_type(content)) is not None:
                return media_type, content
        return None

    def agent_session(self, summary: SessionSummary) -> AgentSession:
        """Return a subagent with all its messages."""
        assert summary.parent_ref is not None
        messages = tuple(self.messages(summary))
        duration_ms, call_count = self._stores.archive.sessions.subagent_totals(summary)
        prompts = (message.content for message in messages if message.role == "user")
        return AgentSession(
            agent_id=summary.id,
            parent_session_id=summary.parent_ref.partition(":")[2],
            prompt=next(prompts, summary.first_message_preview),  # 2.0.58 writes it only into the call
            model=summary.models[0] if summary.models else None,
            messages=messages,
            total_duration_ms=duration_ms,
            total_tokens=summary.total_tokens,
            total_tool_use_count=call_count or 0,
        )


def _absolute_turns(turns: tuple[int, int], count: int) -> tuple[int, int]:
    """Resolve negative turns. A range from the end that is too long starts with the first turn."""
    first, last = (turn + count + 1 if turn < 0 else turn for turn in turns)
    if turns[0] < 0 and turns[1] != turns[0]:
        first = max(first, 1)
    if (turns[0] < 0 and first < 1) or first > min(last, count):
        is_one = turns[0] == turns[1]
        missing = f"is no turn {turns[0]}" if is_one else f"are no turns {turns[0]} to {turns[1]}"
        raise UsageError(f"There {missing}: the session has {pluralize(count, 'turn')}.")
    return first, last


def _until_turn(items: Iterable[TranscriptItem], last: int) -> Iterator[TranscriptItem]:
    """Yield the items up to the end of a turn."""
    depth = 0
    for item in items:
        match item:
            case SubagentStart():
                depth += 1
            case SubagentEnd():
                depth -= 1
            case _ if not depth and item.turn > last:
                return
        yield item
