"""Find secrets in a text.

A prefilter pass matches all rules at once, so the time grows with the text and not with the number of rules.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct

from backscroll.model.export import SecretCategory
from backscroll.redact.rules import EMAIL_RULES, PATH_RULES, SECRET_RULES, SecretRule

__all__ = ["RULES_BY_CATEGORY", "Secret", "SecretScanner"]

_PREFILTER_MEMORY_BYTES = 64 << 20  # RE2 reports no matches at all if its states exceed the limit
RULES_BY_CATEGORY: dict[SecretCategory, tuple[SecretRule, ...]] = {
    "secrets": SECRET_RULES,
    "emails": EMAIL_RULES,
    "paths": PATH_RULES,
}


class Secret(Struct, frozen=True):
    """A secret and its position, in bytes of the UTF-8 text."""

    kind: str
    hint: str
    value: str
    start: int
    end: int


class SecretScanner:
    """Finds secrets of the given categories. Few texts pass the prefilter and need a second pass."""

    def __init__(self, categories: Iterable[SecretCategory] = ("secrets",)) -> None:
        self._rules: Sequence[SecretRule] = [
            rule for category in dict.fromkeys(categories) for rule in RULES_BY_CATEGORY[category]
        ]

    @cached_property
    def _prefilter(self) -> Any:
        import re2  # type: ignore[import-untyped]  # has no type hints

        options = re2.Options()
        options.max_mem = _PREFILTER_MEMORY_BYTES
        prefilter = re2.Set.SearchSet(options)
        for rule in self._rules:
            prefilter.Add(rule.prefilter)
        prefilter.Compile()
        return prefilter

    @cached_property
    def _patterns(self) -> list[Any]:
        import re2

        return [re2.compile(rule.pattern.encode()) for rule in self._rules]

    def find(self, text: str) -> list[Secret]:
        """Return the secrets in a text in order of position. No two overlap."""
        data = text.encode("utf-8", "replace")
        found: list[Secret] = []
        for rule_index in sorted(self._prefilter.Match(data) or ()):
            for secret in self._matches(rule_index, data):
                if all(secret.end <= other.start or other.end <= secret.start for other in found):
                    found.append(secret)
        return sorted(found, key=lambda secret: secret.start)

    def _matches(self, rule_index: int, data: bytes) -> Iterator[Secret]:
        rule, pattern = self._rules[rule_index], self._patterns[rule_index]
        for match in pattern.finditer(data):
            groups = {name.decode(): _decode(value) for name, value in match.groupdict().items()}
            groups[""] = _decode(match[0])
            if rule.accepts is not None and not rule.accepts(groups):
                continue
            start, end = match.span(pattern.groupindex.get(b"secret", 0))
            yield Secret(rule.kind, rule.hint, _decode(data[start:end]), start, end)


def _decode(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")
