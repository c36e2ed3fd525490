"""What each version of Claude Code writes, and how."""

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

__all__ = ["Era", "Layout", "Stop"]

Stop = Literal["never", "last", "always"]
Layout = Literal["inline", "flat", "nested"]

_MODELS = (
    ("2.1.250", "claude-opus-5"),
    ("2.1.172", "claude-opus-4-8"),
    ("2.1.80", "claude-opus-4-6"),
    ("2.1.0", "claude-opus-4-5-20251101"),
    ("2.0.0", "claude-sonnet-4-5-20250929"),
    ("1.0.0", "claude-sonnet-4-20250514"),
    ("0", "claude-3-7-sonnet-20250219"),
)


@dataclass(frozen=True)
class Era:
    """A version, and what it is known to do."""

    version: str

    def reached(self, version: str) -> bool:
        """Whether this version is that one or a later one."""
        return _reached(self.version, version)

    @property
    def model(self) -> str:
        return next(model for since, model in _MODELS if self.reached(since))

    @property
    def joins_blocks(self) -> bool:
        """Whether one line holds all blocks of a response, rather than one line each."""
        return not self.reached("1.0.0")

    @property
    def stop(self) -> Stop:
        """On which lines of a response ``stop_reason`` is set."""
        if self.reached("2.1.97") or self.joins_blocks:
            return "always"
        return "last" if self.reached("2.1.60") else "never"

    @property
    def counts_output(self) -> bool:
        """Whether the last line of a response has its true ``output_tokens``."""
        return self.reached("2.1.60") or not self.reached("2.1.0")

    @property
    def layout(self) -> Layout:
        """Where subagents are written."""
        if self.reached("2.0.76"):
            return "nested"
        return "flat" if self.reached("2.0.28") else "inline"

    @property
    def agent_tool(self) -> str:
        return "Agent" if self.reached("2.1.63") else "Task"

    @property
    def parents_results_to_calls(self) -> bool:
        return self.reached("2.1.0")

    def user_fields(self, mode: str) -> dict[str, Any]:
        """Further fields of a prompt that a person typed."""
        out: dict[str, Any] = {}
        if self.reached("2.1.0"):
            out["thinkingMetadata"] = {"maxThinkingTokens": 31999}
        elif self.reached("2.0.0"):
            out["thinkingMetadata"] = {"level": "none", "disabled": True, "triggers": []}
        if self.reached("2.0.0") and not self.reached("2.1.80"):
            out["todos"] = []
        if self.reached("2.1.80"):
            out["permissionMode"] = mode
        if self.reached("2.1.88"):
            out["origin"] = {"kind": "human"}
        if self.reached("2.1.118"):
            out["promptSource"] = "typed"
        return out

    def usage(self, tokens: dict[str, int]) -> dict[str, Any]:
        """Token counts in the dress of this version."""
        out: dict[str, Any] = {
            "input_tokens": tokens["input_tokens"],
            "cache_creation_input_tokens": tokens["cache_creation_input_tokens"],
            "cache_read_input_tokens": tokens["cache_read_input_tokens"],
        }
        if self.reached("2.0.0"):
            hour = self.reached("2.1.118")
            made = tokens["cache_creation_input_tokens"]
            out["cache_creation"] = {
                "ephemeral_5m_input_tokens": 0 if hour else made,
                "ephemeral_1h_input_tokens": made if hour else 0,
            }
        out["output_tokens"] = tokens["output_tokens"]
        if self.reached("2.1.250"):
            out["output_tokens_details"] = {"thinking_tokens": tokens["output_tokens"] // 3}
        if self.reached("2.1.118"):
            out["server_tool_use"] = {"web_search_requests": 0, "web_fetch_requests": 0}
        if self.reached("1.0.0"):
            out["service_tier"] = "standard"
        if self.reached("2.1.172"):
            out |= {"inference_geo": "not_available", "speed": "standard", "iterations": []}
        return out


@cache
def _reached(one: str, other: str) -> bool:
    return _number(one) >= _number(other)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
