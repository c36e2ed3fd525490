"""One session in bulk: lines put together from finished bytes, many thousands a second."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random

from backscroll.testing.claude_code.bulk.size_distribution import Curve
from backscroll.testing.claude_code.bulk.text_pool import Text
from backscroll.testing.claude_code.bulk.tool_results import IMAGE, Answers
from backscroll.testing.claude_code.bulk.working_files import Desk
from backscroll.testing.claude_code.versions import Release

__all__ = ["Bulk", "new_uuid"]

PROMPT = Curve((0, 3), (0.1, 18), (0.5, 120), (0.9, 2300), (0.99, 20_000), (1, 70_000))
REPLY = Curve((0, 10), (0.1, 40), (0.5, 140), (0.9, 800), (0.99, 2400), (1, 9000))
THOUGHT = Curve((0, 20), (0.1, 60), (0.5, 170), (0.9, 500), (1, 3000))
SIGNATURE = Curve((0, 200), (0.1, 320), (0.5, 900), (0.9, 3200), (1, 12_000))


def new_uuid(rng: Random) -> bytes:
    digits = b"%032x" % rng.getrandbits(128)
    return b"%b-%b-4%b-a%b-%b" % (digits[:8], digits[8:12], digits[13:16], digits[17:20], digits[20:])


class Bulk:
    """Gives a session's lines one after another, for as long as it is asked to."""

    def __init__(
        self,
        rng: Random,
        text: Text,
        answers: Answers,
        *,
        session_id: str,
        version: str,
        cwd: str,
        start: datetime,
    ) -> None:
        self.rng, self.text, self.answers = rng, text, answers
        self.release, self.cwd = Release(version), cwd.encode()
        self.now = start.timestamp()
        self.leaf: bytes | None = None
        self.agent_id: bytes | None = None
        self.is_sidechain = False
        self.agents: list[tuple[bytes, bytes]] = []  # id and prompt of those with a file of their own
        self._desk = Desk(rng, text, self.cwd)
        self.belong_to(session_id)
        self._usage = _usage(self.release)

    def belong_to(self, session_id: str) -> None:
        """Say from here on that the lines are this session's."""
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
        """A conversation without an end; ``opening`` begins the first prompt."""
        rng = self.rng
        while True:
            yield from self._prompt(opening)
            opening = b""
            while rng.random() < 0.83:
                yield from self._step()
                if rng.random() < 0.45:
                    yield self._aside()
            yield from self._response(says=True, thinks=rng.random() < 0.15, calls=0)
            if self.release.is_at_least("2.1.0"):
                yield self._chain(
                    b'"type":"system","subtype":"turn_duration","durationMs":8123,"isMeta":false'
                )

    def work(self, agent_id: bytes, prompt: bytes) -> Iterator[bytes]:
        """A subagent's lines; from here on all are its own."""
        self.agent_id, self.is_sidechain, self.leaf = agent_id, True, None
        yield self._chain(b'"type":"user","message":{"role":"user","content":"%b"}' % prompt)
        for _ in range(self.rng.randrange(1, 12)):
            yield from self._step()
        yield from self._response(says=True, thinks=False, calls=0)

    def compaction(self) -> Iterator[bytes]:
        """Everything so far, replaced by its summary."""
        before, self.leaf = self.leaf, None
        if before is not None:
            yield self._chain(
                b'"logicalParentUuid":"%b","type":"system","subtype":"compact_boundary",'
                b'"content":"Conversation compacted","level":"info",'
                b'"compactMetadata":{"trigger":"auto","preTokens":161234}' % before
            )
        told = self.text.prose.cut(self.rng, self.rng.randrange(6000, 14_000))
        yield self._chain(
            b'"type":"user","message":{"role":"user","content":"This session is being continued from '
            b'a previous conversation. %b"},"isVisibleInTranscriptOnly":true,"isCompactSummary":true' % told
        )

    def state(self) -> bytes:
        """The single record of a file without a message."""
        if self.rng.random() < 0.25:
            words = self.text.prose.cut(self.rng, 60)
            return b'{"type":"summary","summary":"%b","leafUuid":"%b"}' % (words, new_uuid(self.rng))
        return self.snapshot(self.rng.randrange(6, 16))

    def snapshot(self, files: int) -> bytes:
        at, message = self._stamp(), self.leaf or new_uuid(self.rng)
        backups = b",".join(
            b'"src/part%d.py":{"backupFileName":"%016x@v2","version":2,"backupTime":"%b"}'
            % (n, self.rng.getrandbits(64), at)
            for n in range(files)
        )
        return (
            b'{"type":"file-history-snapshot","messageId":"%b","snapshot":{"messageId":"%b",'
            b'"trackedFileBackups":{%b},"timestamp":"%b"},"isSnapshotUpdate":false}'
            % (message, message, backups, at)
        )

    def _prompt(self, opening: bytes) -> Iterator[bytes]:
        words = opening + self.text.prose.cut(self.rng, PROMPT.draw(self.rng))
        content = b'"%b"' % words
        if self.rng.random() < 0.005:
            data = self.text.base64(self.rng, IMAGE.draw(self.rng))
            source = b'{"type":"base64","media_type":"image/png","data":"%b"}' % data
            content = b'[{"type":"text","text":"%b"},{"type":"image","source":%b}]' % (words, source)
        more = b',"origin":{"kind":"human"}' if self.release.is_at_least("2.1.88") else b""
        yield self._chain(b'"type":"user","message":{"role":"user","content":%b}%b' % (content, more))
        if self.release.is_at_least("2.0.0"):
            yield self.snapshot(self.rng.randrange(1, 9))

    def _step(self) -> Iterator[bytes]:
        rng = self.rng
        calls = 1 if rng.random() < 0.85 else rng.randrange(2, 4)
        yield from self._response(says=rng.random() < 0.5, thinks=rng.random() < 0.15, calls=calls)

    def _response(self, *, says: bool, thinks: bool, calls: int) -> Iterator[bytes]:
        """The lines of one response, then the answers to its calls."""
        rng, text = self.rng, self.text
        parts: list[bytes] = []
        if thinks:
            signature = text.base64(rng, SIGNATURE.draw(rng))
            thought = text.prose.cut(rng, THOUGHT.draw(rng))
            parts.append(b'{"type":"thinking","thinking":"%b","signature":"%b"}' % (thought, signature))
        if says:
            parts.append(b'{"type":"text","text":"%b"}' % text.prose.cut(rng, REPLY.draw(rng)))
        drawn = [
            (self._id(b"toolu"), self.answers.draw(rng, self._desk, self.release.agent_tool.encode()))
            for _ in range(calls)
        ]
        parts += [
            b'{"type":"tool_use","id":"%b","name":"%b","input":%b}' % (id_, call.name, call.put)
            for id_, call in drawn
        ]
        message, request, counts = self._id(b"msg"), self._id(b"req"), self._counts()
        lines: list[bytes] = []
        for number, part in enumerate(parts):
            is_last = number == len(parts) - 1
            yield self._chain(
                self._assistant(message, request, part, counts, is_last=is_last, calls=calls > 0)
            )
            lines.append(self.leaf or b"")
        for (id_, call), caller in zip(drawn, lines[len(lines) - calls :], strict=True):
            if self.release.links_results_to_calls:
                self.leaf = caller
            source = (
                b',"sourceToolAssistantUUID":"%b"' % caller if self.release.is_at_least("2.0.76") else b""
            )
            rich = call.rich
            if call.prompt is not None and self.release.subagent_layout == "inline":
                yield from self._sidechain(call.prompt)
            elif call.prompt is not None:
                agent = b"a%016x" % rng.getrandbits(64)
                self.agents.append((agent, call.prompt))
                rich = b'{"agentId":"%b",%b' % (agent, rich[1:])
            yield self._chain(
                b'"type":"user","message":{"role":"user","content":[{"tool_use_id":"%b","type":"tool_result",'
                b'"content":%b}]},"toolUseResult":%b%b' % (id_, call.content, rich, source)
            )

    def _sidechain(self, prompt: bytes) -> Iterator[bytes]:
        """A subagent between its call and the answer, as 1.0 wrote it."""
        before, was, self.leaf, self.is_sidechain = self.leaf, self.is_sidechain, None, True
        yield self._chain(b'"type":"user","message":{"role":"user","content":"%b"}' % prompt)
        for _ in range(self.rng.randrange(1, 6)):
            yield from self._response(says=False, thinks=False, calls=1)
        yield from self._response(says=True, thinks=False, calls=0)
        self.leaf, self.is_sidechain = before, was

    def _assistant(
        self,
        message: bytes,
        request: bytes,
        part: bytes,
        counts: dict[bytes, int],
        *,
        is_last: bool,
        calls: bool,
    ) -> bytes:
        stop = self.release.stop_reason_lines
        ends = stop == "always" or (stop == "last" and is_last)
        reason = (b'"tool_use"' if calls else b'"end_turn"') if ends else b"null"
        known = stop == "always" or (is_last and self.release.has_final_output_tokens)
        usage = self._usage % (counts if known else {**counts, b"out": 3})
        return (
            b'"message":{"model":"%b","id":"%b","type":"message","role":"assistant","content":[%b],"stop_reason":%b,'
            b'"stop_sequence":null,"usage":%b},"requestId":"%b","type":"assistant"'
            % (self.release.model.encode(), message, part, reason, usage, request)
        )

    def _aside(self) -> bytes:
        """A line that nobody said."""
        if self.release.is_at_least("2.1.92"):
            return self._chain(
                b'"attachment":{"type":"task_reminder","content":[{"id":"1","subject":"go on",'
                b'"status":"pending"}],"itemCount":1},"type":"attachment"'
            )
        if self.release.is_at_least("2.1.0"):
            return self._chain(
                b'"type":"progress","data":{"type":"hook_progress","hookEvent":"PostToolUse",'
                b'"hookName":"PostToolUse:Edit","command":"make lint"},'
                b'"toolUseID":"toolu_%016x","parentToolUseID":"toolu_%016x"'
                % (self.rng.getrandbits(64), self.rng.getrandbits(64))
            )
        return self._chain(
            b'"type":"system","content":"Running hook: %b","level":"info","isMeta":false,'
            b'"toolUseID":"toolu_%016x"' % (self.text.prose.cut(self.rng, 110), self.rng.getrandbits(64))
        )

    def _chain(self, body: bytes) -> bytes:
        parent = b'"%b"' % self.leaf if self.leaf is not None else b"null"
        agent = b',"agentId":"%b"' % self.agent_id if self.agent_id is not None else b""
        side = b"true" if self.is_sidechain else b"false"
        self.leaf = new_uuid(self.rng)
        head = b'{"parentUuid":%b,"isSidechain":%b,' % (parent, side)
        return b"".join(
            (head, body, b',"uuid":"', self.leaf, b'","timestamp":"', self._stamp(), self._tail, agent, b"}")
        )

    def _stamp(self) -> bytes:
        self.now += 0.05 + self.rng.random() * 9
        at = datetime.fromtimestamp(self.now, UTC).isoformat(timespec="milliseconds")
        return at[:23].encode() + b"Z"

    def _id(self, prefix: bytes) -> bytes:
        return b"%b_01%022d" % (prefix, self.rng.getrandbits(72))

    def _counts(self) -> dict[bytes, int]:
        rng = self.rng
        return {
            b"in": rng.randrange(2, 40),
            b"made": rng.randrange(100, 5000),
            b"read": rng.randrange(9000, 150_000),
            b"out": rng.randrange(20, 1400),
        }


def _usage(release: Release) -> bytes:
    """The version's usage object with places for the numbers."""
    numbers = {
        "input_tokens": 90_001,
        "cache_creation_input_tokens": 90_002,
        "cache_read_input_tokens": 90_003,
        "output_tokens": 90_004,
    }
    out = json.dumps(release.usage(numbers), separators=(",", ":")).encode()
    for number, name in zip(numbers.values(), (b"in", b"made", b"read", b"out"), strict=True):
        out = out.replace(b"%d" % number, b"%(" + name + b")d")
    return out
