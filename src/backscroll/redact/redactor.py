"""Find secrets in texts, and replace them in sessions and messages by placeholders.

First `scan` everything that will be shown, then redact it. A password that has a name in one message is then
also replaced where it appears without a name. The same secret gets the same number everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from backscroll.model.export import FoundSecret, SecretCategory, SecretLocation
from backscroll.model.message import Edit, Hunk, Message, Origin
from backscroll.model.session import SessionSummary
from backscroll.model.text import pluralize, sanitize
from backscroll.redact.rules import EMAIL_RULES, PATH_RULES, SECRET_RULES, SecretRule, is_plausible

_RULES_BY_CATEGORY: dict[SecretCategory, tuple[SecretRule, ...]] = {
    "secrets": SECRET_RULES,
    "emails": EMAIL_RULES,
    "paths": PATH_RULES,
}

_Change = Callable[[str, str], str]  # of a text and, if it is a value in JSON, its name
_PREFILTER_MEMORY_BYTES = 64 << 20  # RE2 reports no matches at all if its states exceed the limit
_MAX_DEDUPLICATED_CHARS = 200  # longer texts are unlikely to repeat
_MAX_NAMED_VALUE_CHARS = 400
_MIN_DISTINCTIVE_CHARS = 8  # a shorter secret may be any word: replaced only next to its name
_MIN_PARTIAL_CHARS = 6  # the shortest prefix of a secret that is replaced at the end of a title
_SECRET_NAMES = ("password", "passwd", "passphrase", "pwd", "secret", "token", "apikey", "secretkey",
                 "privatekey", "accesskey", "authkey", "clientsecret", "accesstoken", "authtoken",
                 "refreshtoken")  # fmt: skip


class Redactor:
    """Collects secrets and replaces them."""

    def __init__(self, categories: Iterable[SecretCategory] = ("secrets",)) -> None:
        self._scanner = SecretScanner(categories)
        self._known: dict[str, _KnownSecret] = {}  # by the text of the secret
        self._last_numbers: Counter[str] = Counter()  # by kind
        # Matches all known secrets. None until it is compiled, False if there are none.
        self._known_pattern: Any = None

    def scan(self, messages: Iterable[Message]) -> None:
        """Collect the secrets in these messages."""
        seen: set[str] = set()  # folders, branches and files repeat in nearly every message

        def collect(text: str, name: str) -> str:
            if len(text) < _MAX_DEDUPLICATED_CHARS:
                if text in seen and not name:
                    return text
                seen.add(text)
            for secret in self._find(name, sanitize(text)):
                self._remember(secret)
            return text

        for message in messages:
            _with_texts(message, collect)

    @property
    def has_secrets(self) -> bool:
        """Whether any secret is known."""
        return bool(self._known)

    def found_secrets(self) -> list[FoundSecret]:
        """Return the secrets replaced so far, by kind and number."""
        known = sorted(self._known.values(), key=lambda secret: (secret.kind, secret.number))
        return [
            FoundSecret(secret.kind, secret.number, secret.hint, secret.count, tuple(secret.locations))
            for secret in known
            if secret.count
        ]

    def redact_summary(self, summary: SessionSummary) -> SessionSummary:
        """Redact title, preview, folder, branch and notes of a session."""
        location = SecretLocation(summary.ref, None)
        names = ("title", "original_title", "first_message_preview", "workspace_path", "workspace_name",
                 "git_branch")  # fmt: skip
        texts = {name: getattr(summary, name) for name in names}
        redacted = {
            name: self._redact_partial(self.redact_text(text, location), location)
            for name, text in texts.items()
            if text
        }
        notes = tuple(replace(note, text=self.redact_text(note.text, location)) for note in summary.notes)
        return replace(summary, notes=notes, **redacted)

    def redact_message(self, message: Message, ref: str, position: int) -> Message:
        """Redact all parts of a message: text, arguments, results, edits, attachments and paths."""
        location = SecretLocation(ref, position)
        return _with_texts(message, lambda text, name: self.redact_text(text, location, name))

    def redact_text(self, text: str, location: SecretLocation, name: str = "") -> str:
        """Redact a text. Invisible characters are removed first, because they could hide a secret."""
        text = sanitize(text)
        secrets = self._find(name, text)
        if not secrets and not self._contains_known(text):
            return text
        data = text.encode("utf-8", "replace")
        out, at = [], 0
        for secret in secrets:
            out += [self._replace_known(data[at : secret.start].decode(), location)]
            out += [self._use(self._remember(secret), location)]
            at = secret.end
        return "".join([*out, self._replace_known(data[at:].decode("utf-8", "replace"), location)])

    def _redact_partial(self, text: str, location: SecretLocation) -> str:
        """Replace the start of a known secret at the end of a truncated title or preview."""
        whole = text.rstrip("… ")
        for value, known in self._known.items():
            if value.isalpha():
                continue  # may be an ordinary word
            for size in range(min(len(value), len(whole)), _MIN_PARTIAL_CHARS - 1, -1):
                if whole.endswith(value[:size]):
                    return whole[: len(whole) - size] + self._use(known, location)
        return text

    def redact_value(self, value: Any, location: SecretLocation) -> Any:
        """Redact all strings of a JSON value, keys included."""
        return _with_strings(value, lambda text, name: self.redact_text(text, location, name))

    def _find(self, name: str, text: str) -> list[Secret]:
        """Return the secrets in a text. A value whose name denotes a secret may be one as a whole."""
        found = self._scanner.find(text)
        if found or not name:
            return found
        plain = name.lower().replace("_", "").replace("-", "")
        if plain.endswith(_SECRET_NAMES) and "\n" not in text and len(text) <= _MAX_NAMED_VALUE_CHARS:
            kind = "password" if "pass" in plain or "pwd" in plain else "key or token"
            if " " not in text and is_plausible(kind, text):
                return [Secret(kind, "", text, 0, len(text.encode("utf-8", "replace")))]
        return found

    def _remember(self, secret: Secret) -> _KnownSecret:
        known = self._known.get(secret.value)
        if known is None:
            self._last_numbers[secret.kind] += 1
            prefix = f"{secret.hint}… " if secret.hint else ""
            known = _KnownSecret(
                secret.kind,
                self._last_numbers[secret.kind],
                f"{prefix}({pluralize(len(secret.value), 'character')})",
                locations={},
            )
            self._known[secret.value] = known
            self._known_pattern = None
        return known

    def _use(self, known: _KnownSecret, location: SecretLocation) -> str:
        known.count += 1
        known.locations[location] = None
        return known.placeholder

    def _pattern(self) -> Any:
        if self._known_pattern is None:
            import re2  # type: ignore[import-untyped]  # has no type hints

            values = sorted(filter(_is_distinctive, self._known), key=len, reverse=True)
            self._known_pattern = re2.compile("|".join(map(re2.escape, values))) if values else False
        return self._known_pattern

    def _contains_known(self, text: str) -> bool:
        pattern = self._pattern()
        return bool(pattern) and pattern.search(text) is not None

    def _replace_known(self, text: str, location: SecretLocation) -> str:
        pattern = self._pattern()
        if not pattern or pattern.search(text) is None:
            return text
        return str(pattern.sub(lambda match: self._use(self._known[match[0]], location), text))


class _KnownSecret(Struct):
    kind: str
    number: int
    hint: str
    count: int = 0
    locations: dict[SecretLocation, None] = {}

    @property
    def placeholder(self) -> str:
        return f"[redacted: {self.kind} #{self.number}]"


def _is_distinctive(value: str) -> bool:
    """Return whether a secret cannot be an ordinary word. Only then is it replaced everywhere."""
    has_letter, has_digit = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    return len(value) >= _MIN_DISTINCTIVE_CHARS and has_letter and (has_digit or not value.isalnum())


def _with_texts(message: Message, change: _Change) -> Message:
    """Return a message with every text that could contain a secret changed."""

    def optional(text: str | None) -> str | None:
        return change(text, "") if text else text

    def lines(hunk_lines: tuple[str, ...]) -> tuple[str, ...]:
        """Change the lines together, because a private key spans several."""
        return tuple(change("\n".join(hunk_lines), "").split("\n")) if hunk_lines else ()

    def edit(one: Edit) -> Edit:
        hunks = tuple(Hunk(lines(h.removed), lines(h.added), h.old_start, h.new_start) for h in one.hunks)
        return replace(one, path=change(one.path, ""), hunks=hunks)

    tool = message.tool
    return replace(
        message,
        content=change(message.content, ""),
        attachments=tuple(
            replace(one, name=optional(one.name), path=optional(one.path)) for one in message.attachments
        ),
        cwd=optional(message.cwd),
        git_branch=optional(message.git_branch),
        origin=Origin(change(message.origin.path, ""), message.origin.place),
        tool=replace(
            tool,
            params=_with_strings(tool.params, change),
            result=optional(tool.result),
            edits=tuple(map(edit, tool.edits)),
        )
        if tool is not None
        else None,
    )


def _with_strings(value: Any, change: _Change, name: str = "") -> Any:
    """Return a JSON value with all strings changed, keys included."""
    match value:
        case str():
            return change(value, name)
        case dict():
            return {
                change(str(key), ""): _with_strings(item, change, str(key)) for key, item in value.items()
            }
        case list() | tuple():
            return [_with_strings(item, change, name) for item in value]
    return value


class Secret(Struct, frozen=True):
    """A secret and its position, in bytes of the UTF-8 text."""

    kind: str
    hint: str
    value: str
    start: int
    end: int


class SecretScanner:
    """Finds secrets of the given categories.

    A prefilter matches all rules at once, so the time grows with the text and not with the number of rules.
    Few texts pass the prefilter and need a second pass.
    """

    def __init__(self, categories: Iterable[SecretCategory] = ("secrets",)) -> None:
        self._rules: Sequence[SecretRule] = [
            rule for category in dict.fromkeys(categories) for rule in _RULES_BY_CATEGORY[category]
        ]

    @cached_property
    def _prefilter(self) -> Any:
        import re2

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
