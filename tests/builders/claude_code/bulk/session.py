"""Generator of the lines of one session. It joins prepared bytes, because encoding JSON is too slow."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random

from backscroll.testing.claude_code.versions import Release
from tests.builders.claude_code.bulk.size_distribution import SizeDistribution
from tests.builders.claude_code.bulk.text_pool import TextPools
from tests.builders.claude_code.bulk.tool_results import IMAGE_BYTES, ToolCallGenerator
from tests.builders.claude_code.bulk.working_files import WorkingState

PROMPT_BYTES = SizeDistribution((0, 3), (0.1, 18), (0.5, 120), (0.9, 2300), (0.99, 20_000), (1, 70_000))
REPLY_BYTES = SizeDistribution((0, 10), (0.1, 40), (0.5, 140), (0.9, 800), (0.99, 2400), (1, 9000))
THINKING_BYTES = SizeDistribution((0, 20), (0.1, 60), (0.5, 170), (0.9, 500), (1, 3000))
SIGNATURE_BYTES = SizeDistribution((0, 200), (0.1, 320), (0.5, 900), (0.9, 3200), (1, 12_000))


def new_uuid(rng: Random) -> bytes:
    digits = b"%032x" % rng.getrandbits(128)
    return b"%b-%b-4%b-a%b-%b" % (digits[:8], digits[8:12], digits[13:16], digits[17:20], digits[20:])


class SessionGenerator:
    """Endless generator of the lines of a session."""

    def __init__(
        self,
        rng: Random,
        text: TextPools,
        tool_calls: ToolCallGenerator,
        *,
        session_id: str,
        version: str,
        cwd: str,
        start: datetime,
    ) -> None:
        self.rng, self.text, self.tool_calls = rng, text, tool_calls
        self.release, self.cwd = Release(version), cwd.encode()
        self.now = start.timestamp()
        self.leaf: bytes | None = None
        self.agent_id: bytes | None = None
        self.is_sidechain = False
        self.agents: list[tuple[bytes, bytes]] = []  # id and prompt of subagents with their own file
        self._working_state = WorkingState(rng, text, self.cwd)
        self.set_session_id(session_id)
        self._usage_template = _usage_template(self.release)

    def set_session_id(self, session_id: str) -> None:
        """Set the session id of all following lines."""
        self.session_id = session_id.encode()
        release = self.release
        self._tail = (
            b'","userType":"external"%b,"cwd":"%b","sessionId":"%b","version":"%b","gitBranch":"main"%b'
            % (
                b',"entrypoint":"cli"' if release.is_at_least("2.1.70") else b"",
                self.cwd,
                self.session_id,
                release.version.encode(),
                b',"slug":"quiet-ferry-lantern"' if release.is_at_least("2.0.50") else b"",
            )
        )

    def lines(self, opening: bytes) -> Iterator[bytes]:
        """Yield an endless conversation. The first prompt starts with ``opening``."""
        rng = self.rng
        while True:
            yield from self._prompt(opening)
            opening = b""
            while rng.random() < 0.83:
                yield from self._step()
                if rng.random() < 0.45:
                    yield self._event_line()
            yield from self._response(has_text=True, has_thinking=rng.random() < 0.15, call_count=0)
            if self.release.is_at_least("2.1.0"):
                yield self._linked_line(
                    b'"type":"system","subtype":"turn_duration","durationMs":8123,"isMeta":false'
                )

    def subagent_lines(self, agent_id: bytes, prompt: bytes) -> Iterator[bytes]:
        """Yield the lines of a subagent. All following lines belong to it."""
        self.agent_id, self.is_sidechain, self.leaf = agent_id, True, None
        yield self._linked_line(b'"type":"user","message":{"role":"user","content":"%b"}' % prompt)
        for _ in range(self.rng.randrange(1, 12)):
            yield from self._step()
        yield from self._response(has_text=True, has_thinking=False, call_count=0)

    def compaction_lines(self) -> Iterator[bytes]:
        """Yield a compaction: a boundary and a summary of the conversation up to here."""
        parent, self.leaf = self.leaf, None
        if parent is not None:
            yield self._linked_line(
                b'"logicalParentUuid":"%b","type":"system","subtype":"compact_boundary",'
                b'"content":"Conversation compacted","level":"info",'
                b'"compactMetadata":{"trigger":"auto","preTokens":161234}' % parent
            )
        summary = self.text.prose.random_excerpt(self.rng, self.rng.randrange(6000, 14_000))
        yield self._linked_line(
            b'"type":"user","message":{"role":"user","content":"This session is being continued from '
            b'a previous conversation. %b"},"isVisibleInTranscriptOnly":true,"isCompactSummary":true'
            % summary
        )

    def pasted_text(self, size: int) -> Iterator[bytes]:
        """Yield a prompt with a long text."""
        pasted = self.text.code.excerpt(0, size)
        yield self._linked_line(b'"type":"user","message":{"role":"user","content":"%b"}' % pasted)

    def state_line(self) -> bytes:
        """Return the record of a file without messages."""
        if self.rng.random() < 0.25:
            title = self.text.prose.random_excerpt(self.rng, 60)
            return b'{"type":"summary","summary":"%b","leafUuid":"%b"}' % (title, new_uuid(self.rng))
        return self.snapshot_line(self.rng.randrange(6, 16))

    def snapshot_line(self, file_count: int) -> bytes:
        at, message = self._next_time(), self.leaf or new_uuid(self.rng)
        backups = b",".join(
            b'"src/part%d.py":{"backupFileName":"%016x@v2","version":2,"backupTime":"%b"}'
            % (n, self.rng.getrandbits(64), at)
            for n in range(file_count)
        )
        return (
            b'{"type":"file-history-snapshot","messageId":"%b","snapshot":{"messageId":"%b",'
            b'"trackedFileBackups":{%b},"timestamp":"%b"},"isSnapshotUpdate":false}'
            % (message, message, backups, at)
        )

    def _prompt(self, opening: bytes) -> Iterator[bytes]:
        text = opening + self.text.prose.random_excerpt(self.rng, PROMPT_BYTES.sample(self.rng))
        content = b'"%b"' % text
        if self.rng.random() < 0.005:
            data = self.text.base64(self.rng, IMAGE_BYTES.sample(self.rng))
            source = b'{"type":"base64","media_type":"image/png","data":"%b"}' % data
            content = b'[{"type":"text","text":"%b"},{"type":"image","source":%b}]' % (text, source)
        origin = b',"origin":{"kind":"human"}' if self.release.is_at_least("2.1.88") else b""
        yield self._linked_line(b'"type":"user","message":{"role":"user","content":%b}%b' % (content, origin))
        if self.release.is_at_least("2.0.0"):
            yield self.snapshot_line(self.rng.randrange(1, 9))

    def _step(self) -> Iterator[bytes]:
        rng = self.rng
        call_count = 1 if rng.random() < 0.85 else rng.randrange(2, 4)
        yield from self._response(
            has_text=rng.random() < 0.5, has_thinking=rng.random() < 0.15, call_count=call_count
        )

    def _response(self, *, has_text: bool, has_thinking: bool, call_count: int) -> Iterator[bytes]:
        """Yield the lines of one response, then the results of its calls."""
        rng, text = self.rng, self.text
        parts: list[bytes] = []
        if has_thinking:
            signature = text.base64(rng, SIGNATURE_BYTES.sample(rng))
            thinking = text.prose.random_excerpt(rng, THINKING_BYTES.sample(rng))
            parts.append(b'{"type":"thinking","thinking":"%b","signature":"%b"}' % (thinking, signature))
        if has_text:
            parts.append(
                b'{"type":"text","text":"%b"}' % text.prose.random_excerpt(rng, REPLY_BYTES.sample(rng))
            )
        generated = [
            (
                self._id(b"toolu"),
                self.tool_calls.generate(rng, self._working_state, self.release.agent_tool.encode()),
            )
            for _ in range(call_count)
        ]
        parts += [
            b'{"type":"tool_use","id":"%b","name":"%b","input":%b}' % (id_, call.name, call.arguments)
            for id_, call in generated
        ]
        message, request, counts = self._id(b"msg"), self._id(b"req"), self._token_counts()
        uuids: list[bytes] = []
        for index, part in enumerate(parts):
            is_last = index == len(parts) - 1
            yield self._linked_line(
                self._assistant(message, request, part, counts, is_last=is_last, has_calls=call_count > 0)
            )
            uuids.append(self.leaf or b"")
        for (id_, call), caller in zip(generated, uuids[len(uuids) - call_count :], strict=True):
            if self.release.links_results_to_calls:
                self.leaf = caller
            source = (
                b',"sourceToolAssistantUUID":"%b"' % caller if self.release.is_at_least("2.0.76") else b""
            )
            structured = call.structured
            if call.prompt is not None and self.release.subagent_layout == "inline":
                yield from self._sidechain(call.prompt)
            elif call.prompt is not None:
                agent = b"a%016x" % rng.getrandbits(64)
                self.agents.append((agent, call.prompt))
                structured = b'{"agentId":"%b",%b' % (agent, structured[1:])
            yield self._linked_line(
                b'"type":"user","message":{"role":"user","content":[{"tool_use_id":"%b","type":"tool_result",'
                b'"content":%b}]},"toolUseResult":%b%b' % (id_, call.content, structured, source)
            )

    def _sidechain(self, prompt: bytes) -> Iterator[bytes]:
        """Yield the lines of a subagent between its call and the result, as 1.0 wrote them."""
        parent, was_sidechain = self.leaf, self.is_sidechain
        self.leaf, self.is_sidechain = None, True
        yield self._linked_line(b'"type":"user","message":{"role":"user","content":"%b"}' % prompt)
        for _ in range(self.rng.randrange(1, 6)):
            yield from self._response(has_text=False, has_thinking=False, call_count=1)
        yield from self._response(has_text=True, has_thinking=False, call_count=0)
        self.leaf, self.is_sidechain = parent, was_sidechain

    def _assistant(
        self,
        message: bytes,
        request: bytes,
        part: bytes,
        counts: dict[bytes, int],
        *,
        is_last: bool,
        has_calls: bool,
    ) -> bytes:
        stop_lines = self.release.stop_reason_lines
        has_reason = stop_lines == "always" or (stop_lines == "last" and is_last)
        reason = (b'"tool_use"' if has_calls else b'"end_turn"') if has_reason else b"null"
        is_final = stop_lines == "always" or (is_last and self.release.has_final_output_tokens)
        usage = self._usage_template % (counts if is_final else {**counts, b"out": 3})
        return (
            b'"message":{"model":"%b","id":"%b","type":"message","role":"assistant","content":[%b],"stop_reason":%b,'
            b'"stop_sequence":null,"usage":%b},"requestId":"%b","type":"assistant"'
            % (self.release.model.encode(), message, part, reason, usage, request)
        )

    def _event_line(self) -> bytes:
        """Return a line that is neither a prompt nor a response."""
        if self.release.is_at_least("2.1.92"):
            return self._linked_line(
                b'"attachment":{"type":"task_reminder","content":[{"id":"1","subject":"go on",'
                b'"status":"pending"}],"itemCount":1},"type":"attachment"'
            )
        if self.release.is_at_least("2.1.0"):
            return self._linked_line(
                b'"type":"progress","data":{"type":"hook_progress","hookEvent":"PostToolUse",'
                b'"hookName":"PostToolUse:Edit","command":"make lint"},'
                b'"toolUseID":"toolu_%016x","parentToolUseID":"toolu_%016x"'
                % (self.rng.getrandbits(64), self.rng.getrandbits(64))
            )
        return self._linked_line(
            b'"type":"system","content":"Running hook: %b","level":"info","isMeta":false,'
            b'"toolUseID":"toolu_%016x"'
            % (self.text.prose.random_excerpt(self.rng, 110), self.rng.getrandbits(64))
        )

    def _linked_line(self, body: bytes) -> bytes:
        parent = b'"%b"' % self.leaf if self.leaf is not None else b"null"
        agent = b',"agentId":"%b"' % self.agent_id if self.agent_id is not None else b""
        side = b"true" if self.is_sidechain else b"false"
        self.leaf = new_uuid(self.rng)
        head = b'{"parentUuid":%b,"isSidechain":%b,' % (parent, side)
        return b"".join(
            (
                head,
                body,
                b',"uuid":"',
                self.leaf,
                b'","timestamp":"',
                self._next_time(),
                self._tail,
                agent,
                b"}",
            )
        )

    def _next_time(self) -> bytes:
        self.now += 0.05 + self.rng.random() * 9
        at = datetime.fromtimestamp(self.now, UTC).isoformat(timespec="milliseconds")
        return at[:23].encode() + b"Z"

    def _id(self, prefix: bytes) -> bytes:
        return b"%b_01%022d" % (prefix, self.rng.getrandbits(72))

    def _token_counts(self) -> dict[bytes, int]:
        rng = self.rng
        return {
            b"in": rng.randrange(2, 40),
            b"created": rng.randrange(100, 5000),
            b"read": rng.randrange(9000, 150_000),
            b"out": rng.randrange(20, 1400),
        }


def _usage_template(release: Release) -> bytes:
    """Return the usage object of a version with placeholders for the token counts."""
    markers = {
        "input_tokens": 90_001,
        "cache_creation_input_tokens": 90_002,
        "cache_read_input_tokens": 90_003,
        "output_tokens": 90_004,
    }
    template = json.dumps(release.usage(markers), separators=(",", ":")).encode()
    for marker, name in zip(markers.values(), (b"in", b"created", b"read", b"out"), strict=True):
        template = template.replace(b"%d" % marker, b"%(" + name + b")d")
    return template
