"""Find secrets in a text, in time that grows with the text and not with the number of kinds."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct

from backscroll.model.redaction import SecretCategory
from backscroll.redact.rules import EMAIL_RULES, PATH_RULES, SECRET_RULES, SecretRule

__all__ = ["RULES_BY_CATEGORY", "Secret", "SecretScanner"]

_MEMORY = 64 << 20  # for the states of one search; with too little it would find nothing
RULES_BY_CATEGORY: dict[SecretCategory, tuple[SecretRule, ...]] = {
    "secrets": SECRET_RULES,
    "emails": EMAIL_RULES,
    "paths": PATH_RULES,
}


class Secret(Struct, frozen=True):
    """A secret and where it stands, in bytes of the text as UTF-8."""

    kind: str
    hint: str
    value: str
    start: int
    end: int


class SecretScanner:
    """Looks for certain kinds. One pass asks for the clues of all of them; few texts need a second."""

    def __init__(self, kinds: Iterable[SecretCategory] = ("secrets",)) -> None:
        self._forms: Sequence[SecretRule] = [
            form for kind in dict.fromkeys(kinds) for form in RULES_BY_CATEGORY[kind]
        ]

    @cached_property
    def _clues(self) -> Any:
        import re2  # type: ignore[import-untyped]  # it has no types

        options = re2.Options()
        options.max_mem = _MEMORY
        clues = re2.Set.SearchSet(options)
        for form in self._forms:
            clues.Add(form.clue)
        clues.Compile()
        return clues

    @cached_property
    def _patterns(self) -> list[Any]:
        import re2

        return [re2.compile(form.pattern.encode()) for form in self._forms]

    def find(self, text: str) -> list[Secret]:
        """What a text holds, from left to right; no two overlap."""
        data = text.encode("utf-8", "replace")
        found: list[Secret] = []
        for place in sorted(self._clues.Match(data) or ()):
            for secret in self._matches(place, data):
                if all(secret.end <= one.start or one.end <= secret.start for one in found):
                    found.append(secret)
        return sorted(found, key=lambda one: one.start)

    def _matches(self, place: int, data: bytes) -> Iterator[Secret]:
        form, pattern = self._forms[place], self._patterns[place]
        for match in pattern.finditer(data):
            groups = {name.decode(): _text(value) for name, value in match.groupdict().items()}
            groups[""] = _text(match[0])
            if form.accepts is not None and not form.accepts(groups):
                continue
            start, end = match.span(pattern.groupindex.get(b"secret", 0))
            yield Secret(form.kind, form.hint, _text(data[start:end]), start, end)


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")
