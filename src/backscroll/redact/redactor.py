"""Replace secrets by placeholders, wherever they stand in a session.

First `learn` from everything that is to be shown, then have it cleaned: a password
that was given a name once is replaced also where it stands without one. The same
secret has the same number everywhere.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from backscroll.model import Attachment, Edit, Hunk, Message, Origin, SessionSummary, ToolCall
from backscroll.model.redaction import FoundSecret, SecretCategory, SecretLocation
from backscroll.model.sanitize import sanitize
from backscroll.redact.heuristics import is_plausible
from backscroll.redact.scanner import Secret, SecretScanner

__all__ = ["Redactor", "message_strings"]

_NAME = 200  # characters; longer texts are not expected to come again
_SHORTEST = 8  # a shorter one may be any word, and is replaced only where it is called a secret
_SHORTEST_CUT = 6  # characters of a secret that are too many to be shown
_NAMES = ("password", "passwd", "passphrase", "pwd", "secret", "token", "apikey", "secretkey", "privatekey",
          "accesskey", "authkey", "clientsecret", "accesstoken", "authtoken", "refreshtoken")  # fmt: skip


class _Known(Struct):
    kind: str
    number: int
    hint: str
    count: int = 0
    locations: dict[SecretLocation, None] = {}

    @property
    def placeholder(self) -> str:
        return f"[redacted: {self.kind} #{self.number}]"


class Redactor:
    """Knows the secrets it has met, and replaces them."""

    def __init__(self, kinds: Iterable[SecretCategory] = ("secrets",)) -> None:
        self._finder = SecretScanner(kinds)
        self._known: dict[str, _Known] = {}
        self._numbers: Counter[str] = Counter()
        self._literals: Any = None  # all that is known, as one expression; made when it is needed

    def scan(self, messages: Iterable[Message]) -> None:
        """Take note of what these messages hold."""
        seen: set[str] = set()  # folders, branches and files, which nearly every message names again
        for message in messages:
            for name, text in message_strings(message):
                if len(text) < _NAME:
                    if text in seen and not name:
                        continue
                    seen.add(text)
                for secret in self._found(name, sanitize(text)):
                    self._note(secret)

    @property
    def has_secrets(self) -> bool:
        """Whether there is anything to replace."""
        return bool(self._known)

    def found_secrets(self) -> list[FoundSecret]:
        """What was replaced so far, by kind and number."""
        known = sorted(self._known.values(), key=lambda one: (one.kind, one.number))
        return [
            FoundSecret(one.kind, one.number, one.hint, one.count, tuple(one.locations))
            for one in known
            if one.count
        ]

    def redact_summary(self, summary: SessionSummary) -> SessionSummary:
        """A summary with title, preview, folder, branch and notes cleaned."""
        place = SecretLocation(summary.ref, None)
        names = ("title", "original_title", "first_message_preview", "workspace_path", "workspace_name",
                 "git_branch")  # fmt: skip
        texts = {name: getattr(summary, name) for name in names}
        clean = {
            name: self._uncut(self.redact_text(text, place), place) for name, text in texts.items() if text
        }
        notes = tuple(replace(note, text=self.redact_text(note.text, place)) for note in summary.notes)
        return replace(summary, notes=notes, **clean)

    def redact_message(self, message: Message, ref: str, position: int) -> Message:
        """A message with everything in it cleaned: text, arguments, results, edits, attachments, paths."""
        place = SecretLocation(ref, position)
        tool = message.tool
        return replace(
            message,
            content=self.redact_text(message.content, place),
            tool=self._tool(tool, place) if tool is not None else None,
            attachments=tuple(self._attachment(one, place) for one in message.attachments),
            cwd=self._maybe(message.cwd, place),
            git_branch=self._maybe(message.git_branch, place),
            origin=Origin(self.redact_text(message.origin.path, place), message.origin.place),
        )

    def redact_text(self, text: str, place: SecretLocation, name: str = "") -> str:
        """A text without its secrets. Marks that hide or reorder go too, lest they hide one."""
        text = sanitize(text)
        secrets = self._found(name, text)
        if not secrets and not self._has_known(text):
            return text
        data = text.encode("utf-8", "replace")
        out, at = [], 0
        for secret in secrets:
            out += [self._without_known(data[at : secret.start].decode(), place)]
            out += [self._use(self._note(secret), place)]
            at = secret.end
        return "".join([*out, self._without_known(data[at:].decode("utf-8", "replace"), place)])

    def _uncut(self, text: str, place: SecretLocation) -> str:
        """A title or preview may end in the middle of a secret, too short to be told by its form."""
        whole = text.rstrip("… ")
        for value, known in self._known.items():
            if value.isalpha():
                continue  # it may be just a word
            for size in range(min(len(value), len(whole)), _SHORTEST_CUT - 1, -1):
                if whole.endswith(value[:size]):
                    return whole[: len(whole) - size] + self._use(known, place)
        return text

    def redact_value(self, value: Any, place: SecretLocation, name: str = "") -> Any:
        """Any JSON value, cleaned."""
        match value:
            case str():
                return self.redact_text(value, place, name)
            case dict():
                return {
                    self.redact_text(str(key), place): self.redact_value(one, place, str(key))
                    for key, one in value.items()
                }
            case list() | tuple():
                return [self.redact_value(one, place, name) for one in value]
        return value

    def _maybe(self, text: str | None, place: SecretLocation) -> str | None:
        return self.redact_text(text, place) if text else text

    def _tool(self, tool: ToolCall, place: SecretLocation) -> ToolCall:
        return replace(
            tool,
            params=self.redact_value(tool.params, place),
            result=self._maybe(tool.result, place),
            edits=tuple(
                Edit(
                    self.redact_text(edit.path, place),
                    tuple(self._hunk(hunk, place) for hunk in edit.hunks),
                    edit.kind,
                    edit.lines_added,
                    edit.lines_removed,
                )
                for edit in tool.edits
            ),
        )

    def _hunk(self, hunk: Hunk, place: SecretLocation) -> Hunk:
        """Lines are cleaned together, because a key may take several."""
        removed, added = (
            tuple(self.redact_text("\n".join(lines), place).split("\n")) if lines else ()
            for lines in (hunk.removed, hunk.added)
        )
        return Hunk(removed, added, hunk.old_start, hunk.new_start)

    def _attachment(self, one: Attachment, place: SecretLocation) -> Attachment:
        return replace(one, name=self._maybe(one.name, place), path=self._maybe(one.path, place))

    def _found(self, name: str, text: str) -> list[Secret]:
        """What a text holds; one that is called a secret by its name may be one as a whole."""
        found = self._finder.find(text)
        if found or not name:
            return found
        plain = name.lower().replace("_", "").replace("-", "")
        if plain.endswith(_NAMES) and "\n" not in text and len(text) <= 400:
            kind = "password" if "pass" in plain or "pwd" in plain else "key or token"
            if " " not in text and is_plausible(kind, text):
                return [Secret(kind, "", text, 0, len(text.encode("utf-8", "replace")))]
        return found

    def _note(self, secret: Secret) -> _Known:
        known = self._known.get(secret.value)
        if known is None:
            self._numbers[secret.kind] += 1
            hint = f"{secret.hint}… " if secret.hint else ""
            known = _Known(
                secret.kind,
                self._numbers[secret.kind],
                f"{hint}({len(secret.value):,} characters)",
                locations={},
            )
            self._known[secret.value] = known
            self._literals = None
        return known

    def _use(self, known: _Known, place: SecretLocation) -> str:
        known.count += 1
        known.locations[place] = None
        return known.placeholder

    def _pattern(self) -> Any:
        if self._literals is None:
            import re2  # type: ignore[import-untyped]  # it has no types

            long = sorted((value for value in self._known if _is_telling(value)), key=len, reverse=True)
            self._literals = re2.compile("|".join(map(re2.escape, long))) if long else False
        return self._literals

    def _has_known(self, text: str) -> bool:
        pattern = self._pattern()
        return bool(pattern) and pattern.search(text) is not None

    def _without_known(self, text: str, place: SecretLocation) -> str:
        pattern = self._pattern()
        if not pattern or pattern.search(text) is None:
            return text
        return str(pattern.sub(lambda match: self._use(self._known[match[0]], place), text))


def _is_telling(value: str) -> bool:
    """Whether it cannot be just a word: then it is replaced wherever it stands."""
    has_letter, has_digit = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    return len(value) >= _SHORTEST and has_letter and (has_digit or not value.isalnum())


def message_strings(message: Message) -> Iterator[tuple[str, str]]:
    """Every text of a message that could hold a secret, with the name it is given there, if any."""
    yield "", message.content
    for one in message.attachments:
        yield from (("", text) for text in (one.name, one.path) if text)
    yield from (("", text) for text in (message.cwd, message.git_branch, message.origin.path) if text)
    if message.tool is None:
        return
    yield from _strings(message.tool.params, "")
    if message.tool.result:
        yield "", message.tool.result
    for edit in message.tool.edits:
        yield "", edit.path
        for hunk in edit.hunks:
            yield from (("", "\n".join(lines)) for lines in (hunk.removed, hunk.added) if lines)


def _strings(value: Any, name: str) -> Iterator[tuple[str, str]]:
    match value:
        case str():
            yield name, value
        case dict():
            for key, one in value.items():
                yield "", str(key)
                yield from _strings(one, str(key))
        case list() | tuple():
            for one in value:
                yield from _strings(one, name)
