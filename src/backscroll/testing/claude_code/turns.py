"""What the assistant and its user say: ``user`` and ``assistant`` lines."""

import base64
from collections.abc import Sequence
from typing import Any, Self

from backscroll.testing.claude_code import blocks
from backscroll.testing.claude_code.blocks import Block
from backscroll.testing.claude_code.lines import Lines
from backscroll.testing.claude_code.tool_calls import Call

__all__ = ["Talk"]

_REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a "
    "file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the "
    "user to tell you how to proceed."
)


class Talk(Lines):
    """Prompts, replies, tool calls and their results."""

    def user(self, content: str | list[Any], *, mode: str = "default", **extra: Any) -> Self:
        """Say something as a person; blocks stand for pasted images and the like."""
        body: dict[str, Any] = {"promptId": self.new_uuid()} if self.era.reached("2.1.80") else {}
        body |= {"type": "user", "message": {"role": "user", "content": content}}
        self.chain(body | self.era.user_fields(mode), extra)
        texts = [content] if isinstance(content, str) else [b["text"] for b in content if "text" in b]
        self.prompts += texts
        return self

    def meta(self, text: str, **extra: Any) -> Self:
        """Text that Claude Code put there itself, in the user's name."""
        self.chain({"type": "user", "isMeta": True, "message": {"role": "user", "content": text}}, extra)
        return self

    def wrapped(self, content: str | list[Block], **extra: Any) -> Self:
        """A user line that no person typed: its text is markup, or its fields say so."""
        self.chain({"type": "user", "message": {"role": "user", "content": content}}, extra)
        return self

    def assistant(
        self,
        text: str | None = None,
        *,
        thinking: str | None = None,
        tools: Sequence[Call] = (),
        further: Sequence[Block] = (),
        usage: dict[str, Any] | None = None,
        model: str | None = None,
        message_id: str | None = None,
        request_id: str | None = None,
        together: bool | None = None,
        streamed: bool | None = None,
        stop_reason: str | None = None,
        **extra: Any,
    ) -> Self:
        """One response: thinking, text, any further blocks, then tool calls.

        Lines, ``stop_reason`` and ``usage`` follow the version's habits.
        ``together`` puts all blocks on one line, ``streamed`` writes null and a
        placeholder on all but the last. The same ``message_id`` in a later call
        is a further fragment of the same response.
        """
        content: list[Block] = []
        if thinking is not None:
            content.append(blocks.thinking(thinking, self.signature()))
        if text is not None:
            content.append(blocks.text(text))
            self.replies.append(text)
        content += [*further, *map(self._tool_use, tools)]
        joined = self.era.joins_blocks if together is None else together
        lines = [content] if joined else [[block] for block in content]
        stop = stop_reason or ("tool_use" if tools else "end_turn")
        common = {"id": message_id or self.new_id("msg"), "type": "message", "role": "assistant"}
        request = request_id or self.new_id("req")
        final = usage or self._tokens(content)
        for number, part in enumerate(lines):
            is_last = number == len(lines) - 1
            message = {"model": model or self.era.model, **common, "content": part}
            message |= self._ending(stop, final, is_last=is_last, streamed=streamed)
            self.chain(self._response(message, request, number, part), extra)
        return self

    def result(
        self,
        tool_use_id: str,
        content: str | list[Block] = "",
        *,
        tool_use_result: Any = None,
        is_error: bool = False,
        **extra: Any,
    ) -> Self:
        """Answer a tool call."""
        caller = self._caller(tool_use_id)
        block: Block = {"tool_use_id": tool_use_id, "type": "tool_result", "content": content}
        if is_error or self.era.reached("2.1.250"):
            block["is_error"] = is_error
        if caller is not None and self.era.parents_results_to_calls:
            self.leaf = caller
        body: dict[str, Any] = {"type": "user", "message": {"role": "user", "content": [block]}}
        if tool_use_result is not None:
            body["toolUseResult"] = tool_use_result
        if caller is not None and self.era.reached("2.0.76"):
            body["sourceToolAssistantUUID"] = caller
        self.chain(body, extra)
        return self

    def run(self, *calls: Call, text: str | None = None, thinking: str | None = None, **extra: Any) -> Self:
        """One response that calls tools, then their answers; several calls run in parallel."""
        self.assistant(text, thinking=thinking, tools=calls, **extra)
        for call, id_ in zip(calls, self.tool_ids[len(self.tool_ids) - len(calls) :], strict=True):
            self.result(id_, call.content, tool_use_result=call.rich, is_error=call.is_error)
        return self

    def reject(self, tool_use_id: str) -> Self:
        """The user does not let a tool run."""
        extra = {"toolDenialKind": "user-rejected"} if self.era.reached("2.1.118") else {}
        rich = "User rejected tool use" if self.era.reached("2.1.0") else "Error: " + _REJECTED
        return self.result(tool_use_id, _REJECTED, tool_use_result=rich, is_error=True, **extra)

    def interrupt(self, *, for_tool: bool = False) -> Self:
        """The user presses Escape."""
        words = "[Request interrupted by user for tool use]" if for_tool else "[Request interrupted by user]"
        extra = {"interruptedMessageId": self.new_id("msg")} if self.era.reached("2.1.0") else {}
        return self.wrapped([blocks.text(words)], **extra)

    def error(self, text: str = "API Error: Overloaded", *, status: int | None = 529, **extra: Any) -> Self:
        """Something that Claude Code says in the assistant's place."""
        message = {
            "id": self.new_uuid(),
            "type": "message",
            "role": "assistant",
            "model": "<synthetic>",
            "content": [blocks.text(text)],
            "stop_reason": "stop_sequence",
            "stop_sequence": "",
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        body: dict[str, Any] = {"type": "assistant", "message": message, "isApiErrorMessage": True}
        if status is not None and self.era.reached("2.1.80"):
            body |= {"error": "overloaded", "apiErrorStatus": status}
        self.chain(body, extra)
        return self

    def signature(self, size: int = 96) -> str:
        return base64.b64encode(self.random.randbytes(size)).decode()

    def _tool_use(self, call: Call) -> Block:
        id_ = call.id or self.new_id("toolu")
        self.tool_ids.append(id_)
        block: Block = {"type": "tool_use", "id": id_, "name": call.name, "input": call.input}
        if self.era.reached("2.1.250"):
            block["caller"] = {"type": "direct"}
        return block

    def _tokens(self, content: list[Block]) -> dict[str, int]:
        size = sum(len(blocks.encode(block)) for block in content)
        return {
            "input_tokens": self.random.randrange(2, 12),
            "cache_creation_input_tokens": self.random.randrange(200, 4000),
            "cache_read_input_tokens": self.random.randrange(12_000, 90_000),
            "output_tokens": 8 + size // 4,
        }

    def _ending(
        self, stop: str, final: dict[str, Any], *, is_last: bool, streamed: bool | None
    ) -> dict[str, Any]:
        """How a response's line says that it is over, and what it has cost so far."""
        habit = "last" if streamed else self.era.stop
        reason = stop if habit == "always" or (habit == "last" and is_last) else None
        known = habit == "always" or (is_last and self.era.counts_output)
        usage = final
        if "input_tokens" in final and "cache_read_input_tokens" in final:
            usage = self.era.usage(
                final if known else {**final, "output_tokens": 1 + self.random.randrange(8)}
            )
        return {"stop_reason": reason, "stop_sequence": None, "usage": usage}

    def _response(
        self, message: dict[str, Any], request: str, number: int, part: list[Block]
    ) -> dict[str, Any]:
        body: dict[str, Any] = {"message": message}
        if self.era.joins_blocks:
            body |= {
                "costUSD": round(self.random.uniform(0.002, 0.09), 6),
                "durationMs": self.random.randrange(900, 9000),
            }
        body["requestId"] = request
        if self.era.reached("2.1.280"):
            body["apiBlockIndex"] = number
            shell = {b["id"]: b["input"] for b in part if b["type"] == "tool_use" and b["name"] == "Bash"}
            if shell:
                wire = {
                    id_: {**put, "command": f"cd {self.cwd} && {put['command']}"}
                    for id_, put in shell.items()
                }
                body |= {
                    "wireToolInputs": wire,
                    "wireIngestContext": {id_: {"cwd": self.cwd} for id_ in shell},
                }
        if self.era.reached("2.1.212"):
            body["effort"] = "high"
        return body | {"type": "assistant"}

    def _caller(self, tool_use_id: str) -> str | None:
        for record in reversed(self.records):
            if not isinstance(record, dict) or record.get("type") != "assistant":
                continue
            if any(block.get("id") == tool_use_id for block in record["message"]["content"]):
                return str(record["uuid"])
        return None
