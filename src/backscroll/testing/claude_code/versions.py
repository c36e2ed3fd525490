"""Differences between the versions of Claude Code."""

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

StopReasonLines = Literal["never", "last", "always"]
SubagentLayout = Literal["inline", "flat", "nested"]

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
class Release:
    """A version of Claude Code and the format that it writes."""

    version: str

    def is_at_least(self, version: str) -> bool:
        """Return whether this version is the given one or a later one."""
        return _is_at_least(self.version, version)

    @property
    def model(self) -> str:
        return next(model for since, model in _MODELS if self.is_at_least(since))

    @property
    def has_all_blocks_on_one_line(self) -> bool:
        """Whether one line contains all blocks of a response. Later versions write one line per block."""
        return not self.is_at_least("1.0.0")

    @property
    def stop_reason_lines(self) -> StopReasonLines:
        """Lines of a response in which ``stop_reason`` is set."""
        if self.is_at_least("2.1.97") or self.has_all_blocks_on_one_line:
            return "always"
        return "last" if self.is_at_least("2.1.60") else "never"

    @property
    def has_final_output_tokens(self) -> bool:
        """Whether the last line of a response has the final ``output_tokens``."""
        return self.is_at_least("2.1.60") or not self.is_at_least("2.1.0")

    @property
    def subagent_layout(self) -> SubagentLayout:
        """Location of the lines of a subagent."""
        if self.is_at_least("2.0.76"):
            return "nested"
        return "flat" if self.is_at_least("2.0.28") else "inline"

    @property
    def agent_tool(self) -> str:
        return "Agent" if self.is_at_least("2.1.63") else "Task"

    @property
    def links_results_to_calls(self) -> bool:
        return self.is_at_least("2.1.0")

    def user_fields(self, mode: str) -> dict[str, Any]:
        """Return the additional fields of a prompt that the user typed."""
        out: dict[str, Any] = {}
        if self.is_at_least("2.1.0"):
            out["thinkingMetadata"] = {"maxThinkingTokens": 31999}
        elif self.is_at_least("2.0.0"):
            out["thinkingMetadata"] = {"level": "none", "disabled": True, "triggers": []}
        if self.is_at_least("2.0.0") and not self.is_at_least("2.1.80"):
            out["todos"] = []
        if self.is_at_least("2.1.80"):
            out["permissionMode"] = mode
        if self.is_at_least("2.1.88"):
            out["origin"] = {"kind": "human"}
        if self.is_at_least("2.1.118"):
            out["promptSource"] = "typed"
        return out

    def usage(self, tokens: dict[str, int]) -> dict[str, Any]:
        """Return token counts in the format of this version."""
        out: dict[str, Any] = {
            "input_tokens": tokens["input_tokens"],
            "cache_creation_input_tokens": tokens["cache_creation_input_tokens"],
            "cache_read_input_tokens": tokens["cache_read_input_tokens"],
        }
        if self.is_at_least("2.0.0"):
            has_hour_cache = self.is_at_least("2.1.118")
            created = tokens["cache_creation_input_tokens"]
            out["cache_creation"] = {
                "ephemeral_5m_input_tokens": 0 if has_hour_cache else created,
                "ephemeral_1h_input_tokens": created if has_hour_cache else 0,
            }
        out["output_tokens"] = tokens["output_tokens"]
        if self.is_at_least("2.1.250"):
            out["output_tokens_details"] = {"thinking_tokens": tokens["output_tokens"] // 3}
        if self.is_at_least("2.1.118"):
            out["server_tool_use"] = {"web_search_requests": 0, "web_fetch_requests": 0}
        if self.is_at_least("1.0.0"):
            out["service_tier"] = "standard"
        if self.is_at_least("2.1.172"):
            out |= {"inference_geo": "not_available", "speed": "standard", "iterations": []}
        return out


@cache
def _is_at_least(version: str, minimum: str) -> bool:
    return _parse_version(version) >= _parse_version(minimum)


def _parse_version(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
