"""Lines of type ``user`` and ``assistant``."""

import base64
from collections.abc import Sequence
from typing import Any, Self

from backscroll.testing.claude_code import blocks
from backscroll.testing.claude_code.blocks import Block
from backscroll.testing.claude_code.lines import Lines
from backscroll.testing.claude_code.tool_calls import Call

_REJECTED_START = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a "
    "file edit, the new_string was NOT written to the file). "
)
_REJECTED = f"{_REJECTED_START}STOP what you are doing and wait for the user to tell you how to proceed."
_INTERRUPTED_TOOL = "[Request interrupted by user for tool use]"


class MessageLines(Lines):
    """Prompts, replies, tool calls and their results."""

    def user(self, content: str | list[Any], *, mode: str = "default", **extra: Any) -> Self:
        """Add a prompt that the user typed. A list of blocks can contain pasted images."""
        body: dict[str, Any] = {"promptId": self.new_uuid()} if self.release.is_at_least("2.1.80") else {}
        body |= {"type": "user", "message": {"role": "user", "content": content}}
        self.linked_line(body | self.release.user_fields(mode), extra)
        texts = (
            [content] if isinstance(content, str) else [part["text"] for part in content if "text" in part]
        )
        self.prompts += texts
        return self

    def meta(self, text: str, **extra: Any) -> Self:
        """Add a user line with text that Claude Code generated."""
        self.linked_line(
            {"type": "user", "isMeta": True, "message": {"role": "user", "content": text}}, extra
        )
        return self

    def user_line(self, content: str | list[Block], **extra: Any) -> Self:
        """Add a user line that is not a typed prompt: markup, tool results or generated text."""
        self.linked_line({"type": "user", "message": {"role": "user", "content": content}}, extra)
        return self

    def assistant(
        self,
        text: str | None = None,
        *,
        thinking: str | None = None,
        tools: Sequence[Call] = (),
        extra_blocks: Sequence[Block] = (),
        usage: dict[str, Any] | None = None,
        model: str | None = None,
        message_id: str | None = None,
        request_id: str | None = None,
        on_one_line: bool | None = None,
        streamed: bool | None = None,
        stop_reason: str | None = None,
        **extra: Any,
    ) -> Self:
        """Add a response: thinking, text, ``extra_blocks``, then tool calls.

        Lines, ``stop_reason`` and ``usage`` have the format of the version.
        ``on_one_line`` puts all blocks on one line. ``streamed`` writes null and a
        placeholder on all lines but the last. A later call with the same
        ``message_id`` continues the same response.
        """
        content: list[Block] = []
        if thinking is not None:
            content.append(blocks.thinking(thinking, self.signature()))
        if text is not None:
            content.append(blocks.text(text))
            self.replies.append(text)
        content += [*extra_blocks, *map(self._tool_use, tools)]
        if on_one_line is None:
            on_one_line = self.release.has_all_blocks_on_one_line
        lines = [content] if on_one_line else [[block] for block in content]
        stop = stop_reason or ("tool_use" if tools else "end_turn")
        common = {"id": message_id or self.new_id("msg"), "type": "message", "role": "assistant"}
        request = request_id or self.new_id("req")
        final_usage = usage or self._token_counts(content)
        for index, part in enumerate(lines):
            is_last = index == len(lines) - 1
            message = {"model": model or self.release.model, **common, "content": part}
            message |= self._stop_and_usage(stop, final_usage, is_last=is_last, streamed=streamed)
            self.linked_line(self._response(message, request, index, part), extra)
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
        """Add the result of a tool call."""
        caller = self._caller_uuid(tool_use_id)
        block: Block = {"tool_use_id": tool_use_id, "type": "tool_result", "content": content}
        if is_error or self.release.is_at_least("2.1.250"):
            block["is_error"] = is_error
        if caller is not None and self.release.links_results_to_calls:
            self.leaf = caller
        body: dict[str, Any] = {"type": "user", "message": {"role": "user", "content": [block]}}
        if tool_use_result is not None:
            body["toolUseResult"] = tool_use_result
        if caller is not None and self.release.is_at_least("2.0.76"):
            body["sourceToolAssistantUUID"] = caller
        self.linked_line(body, extra)
        return self

    def run(self, *calls: Call, text: str | None = None, thinking: str | None = None, **extra: Any) -> Self:
        """Add a response with tool calls, then their results. Several calls run in parallel."""
        self.assistant(text, thinking=thinking, tools=calls, **extra)
        for call, id_ in zip(calls, self.tool_ids[len(self.tool_ids) - len(calls) :], strict=True):
            self.result(id_, call.content, tool_use_result=call.tool_use_result, is_error=call.is_error)
        return self

    def reject(self, tool_use_id: str, *, feedback: str | None = None) -> Self:
        """Add the result of a tool call that the user rejected, with the text that the user typed."""
        extra: dict[str, Any] = {}
        has_denial_kind = self.release.is_at_least("2.1.118")
        if has_denial_kind:
            extra["toolDenialKind"] = "user-rejected"
        if feedback is None:
            reason = "User rejected tool use" if has_denial_kind else f"Error: {_REJECTED}"
            return self.result(tool_use_id, _REJECTED, tool_use_result=reason, is_error=True, **extra)
        if self.release.is_at_least("2.1.325"):
            extra |= {"userFeedback": feedback, "holdsPersonsWords": True}
            extra["permissionDecision"] = {"decision": "reject", "source": "user_reject"}
        text = f"{_REJECTED_START}To tell you how to proceed, the user said:\n{feedback}"
        self.prompts.append(feedback)
        return self.result(tool_use_id, text, tool_use_result=f"Error: {text}", is_error=True, **extra)

    def deny(
        self, tool_use_id: str, text: str, *, kind: str = "user-rejected", source: str = "config"
    ) -> Self:
        """Add the result of a tool call that was denied without asking the user.

        The denial kind is ``user-rejected`` unless a rule or a hook denied the call.
        """
        extra: dict[str, Any] = {"toolDenialKind": kind} if self.release.is_at_least("2.1.118") else {}
        if self.release.is_at_least("2.1.325"):
            extra["permissionDecision"] = {"decision": "reject", "source": source}
        return self.result(tool_use_id, text, tool_use_result=f"Error: {text}", is_error=True, **extra)

    def stop(self, tool_use_id: str) -> Self:
        """Add the result of a running tool call that the user stopped, and the interruption."""
        if not self.release.is_at_least("2.1.118"):
            text = f"Exit code 137\n{_INTERRUPTED_TOOL}"
            self.result(tool_use_id, text, tool_use_result=f"Error: {text}", is_error=True)
            return self.interrupt(for_tool=True)
        call = next(
            r for r in self.records if isinstance(r, dict) and r.get("uuid") == self._caller_uuid(tool_use_id)
        )
        has_terminal = self.entrypoint == "cli"
        return self.reject(tool_use_id).interrupt(
            for_tool=True, response_id=call["message"]["id"] if has_terminal else None
        )

    def interrupt(self, *, for_tool: bool = False, response_id: str | None = None) -> Self:
        """Add the line for a request that the user interrupted.

        ``response_id`` is the response whose tool call was running. A rejected call also
        interrupts the request, but then the line does not name a response.
        """
        text = _INTERRUPTED_TOOL if for_tool else "[Request interrupted by user]"
        extra = {}
        if self.release.is_at_least("2.1.0"):
            random_id = self.new_id("msg")
            id_ = response_id if for_tool else random_id
            extra = {"interruptedMessageId": id_} if id_ is not None else {}
        return self.user_line([blocks.text(text)], **extra)

    def error(self, text: str = "API Error: Overloaded", *, status: int | None = 529, **extra: Any) -> Self:
        """Add an error message that Claude Code wrote as an assistant line."""
        body: dict[str, Any] = {"isApiErrorMessage": True}
        if status is not None and self.release.is_at_least("2.1.80"):
            body |= {"error": "overloaded", "apiErrorStatus": status}
        self.linked_line(self._synthetic_message(text) | body, extra)
        return self

    def no_response(self) -> Self:
        """Add the sentence that a resume writes after a command, an interruption or a kill."""
        extra: dict[str, Any] = {"isApiErrorMessage": False}
        if self.release.is_at_least("2.1.325"):
            extra["madeBy"] = "other"
        self.linked_line(self._synthetic_message("No response requested."), extra)
        return self

    def signature(self, size: int = 96) -> str:
        return base64.b64encode(self.random.randbytes(size)).decode()

    def _tool_use(self, call: Call) -> Block:
        id_ = call.id or self.new_id("toolu")
        self.tool_ids.append(id_)
        block: Block = {"type": "tool_use", "id": id_, "name": call.name, "input": call.input}
        if self.release.is_at_least("2.1.250"):
            block["caller"] = {"type": "direct"}
        return block

    def _synthetic_message(self, text: str) -> dict[str, Any]:
        """Return the fields of an assistant line with a text of Claude Code."""
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
        return {"type": "assistant", "message": message}

    def _token_counts(self, content: list[Block]) -> dict[str, int]:
        size = sum(len(blocks.encode(block)) for block in content)
        return {
            "input_tokens": self.random.randrange(2, 12),
            "cache_creation_input_tokens": self.random.randrange(200, 4000),
            "cache_read_input_tokens": self.random.randrange(12_000, 90_000),
            "output_tokens": 8 + size // 4,
        }

    def _stop_and_usage(
        self, stop: str, final_usage: dict[str, Any], *, is_last: bool, streamed: bool | None
    ) -> dict[str, Any]:
        """Return the fields ``stop_reason``, ``stop_sequence`` and ``usage`` of a line."""
        stop_lines = "last" if streamed else self.release.stop_reason_lines
        reason = stop if stop_lines == "always" or (stop_lines == "last" and is_last) else None
        is_final = stop_lines == "always" or (is_last and self.release.has_final_output_tokens)
        usage = final_usage
        if "input_tokens" in final_usage and "cache_read_input_tokens" in final_usage:
            usage = self.release.usage(
                final_usage if is_final else {**final_usage, "output_tokens": 1 + self.random.randrange(8)}
            )
        return {"stop_reason": reason, "stop_sequence": None, "usage": usage}

    def _response(
        self, message: dict[str, Any], request: str, index: int, part: list[Block]
    ) -> dict[str, Any]:
        body: dict[str, Any] = {"message": message}
        if self.release.has_all_blocks_on_one_line:
            body |= {
                "costUSD": round(self.random.uniform(0.002, 0.09), 6),
                "durationMs": self.random.randrange(900, 9000),
            }
        body["requestId"] = request
        if self.release.is_at_least("2.1.280"):
            body["apiBlockIndex"] = index
            shell = {
                block["id"]: block["input"]
                for block in part
                if block["type"] == "tool_use" and block["name"] == "Bash"
            }
            if shell:
                wire = {
                    id_: {**arguments, "command": f"cd {self.cwd} && {arguments['command']}"}
                    for id_, arguments in shell.items()
                }
                body |= {
                    "wireToolInputs": wire,
                    "wireIngestContext": {id_: {"cwd": self.cwd} for id_ in shell},
                }
        if self.release.is_at_least("2.1.212"):
            body["effort"] = "high"
        return body | {"type": "assistant"}

    def _caller_uuid(self, tool_use_id: str) -> str | None:
        """Return the uuid of the line with the tool call."""
        for record in reversed(self.records):
            if not isinstance(record, dict) or record.get("type") != "assistant":
                continue
            if any(block.get("id") == tool_use_id for block in record["message"]["content"]):
                return str(record["uuid"])
        return None
