"""Find secrets in texts, and replace them in sessions and messages by placeholders.

First `Redactor.scan` everything that will be shown, then redact it. A password that has a name in one message
is then also replaced where it appears without a name. The same secret gets the same number everywhere.

Most issuers give their keys a recognizable format: a prefix, a length, an alphabet. A secret without such
a format is recognized by the name before it. A password that is a plain word is recognized by a context that
only a password fits. The rules are at the end of this module.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import log2
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from backscroll.model.export import FoundSecret, SecretCategory, SecretLocation
from backscroll.model.message import Edit, Hunk, Message, Origin
from backscroll.model.session import SessionSummary
from backscroll.model.text import pluralize, sanitize

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

    def redact_value(self, value: Any, location: SecretLocation) -> Any:
        """Redact all strings of a JSON value, keys included."""
        return _with_strings(value, lambda text, name: self.redact_text(text, location, name))

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


# The rules

# Parts of the patterns.
_BEGIN, _END = (rf"-----{word} (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----" for word in ("BEGIN", "END"))
_BREAK = r"(?:\s|\\[nr])*"
_SEPARATOR = r"[\"'\\\]]{0,4}\s{0,4}(?:=>|:=|=|:)\s{0,4}[\"'\\`]{0,3}"
_VALUE = r"[^\s\"'`,;<>(){}\[\]\\]"
_QUOTES = "\"'`"
_PASSWORD = r"(?P<name>passw(?:or)?d|passphrase|pwd)[0-9]{0,2}"
_PASSWORD_PREFILTER = r"(?i:passw(?:or)?d|passphrase|pwd)[0-9]{0,2}(?:[\"'\\\]]{0,4}\s{0,4}[:=]|\s{1,3}is)"
_KEY = (
    r"(?P<name>secret|token|credential"
    r"|(?:api|access|auth|private|secret|signing|encryption|account|master|service|license)[_-]?key)[0-9]{0,2}"
)
_KEY_PREFILTER = r"(?i:secret|token|credential|key)[0-9]{0,2}(?:[\"'\\\]]{0,4}\s{0,4}[:=]|[ ])"

# Parts of the contexts of passwords that are plain words.
_LETTERS = r"(?P<secret>[A-Za-z]{6,64})"
_WORD = _LETTERS + r"(?P<after>[\w(.\[$-]?)"
_QUOTED = r"[bru]?\\{0,3}[\"']" + _LETTERS + r"\\{0,3}[\"'](?P<after>)"
_USER = r"(?i:\b(?:user(?:_?name)?|login|uid|usr))"
_NAME = r"(?i:pass(?:word|wd|phrase)?|pwd)"
_NAME_SEPARATOR = r"\\{0,3}[\"']?\s{0,2}[:=]\s{0,2}"
_SERVICE = r"(?:DB|DATABASE|SMTP|MAIL|EMAIL|FTP|SFTP|REDIS|MYSQL|PG|POSTGRES|MONGO|ADMIN|ROOT|SSH|SUDO)_"

# Kind, prefix as shown, pattern of the prefix, pattern of the rest. Most consist of \w and -.
_PREFIXED = (
    ("age secret key", "AGE-SECRET-KEY-1", "AGE-SECRET-KEY-1", r"[0-9A-Z]{58}"),
    ("Anthropic key", "sk-ant-", "sk-ant-", r"[a-z]{3,6}[0-9]{2}-[\w-]{20,}"),
    ("OpenRouter key", "sk-or-", "sk-or-v1-", r"[0-9a-f]{64}"),
    (
        "OpenAI key",
        "sk-",
        "sk-",
        r"(?:(?:proj|svcacct|admin)-[\w-]{20,}|\w{20}T3BlbkFJ\w{20}|[A-Za-z0-9]{48})",
    ),
    ("GitHub token", "gh?_", "gh[pousr]_", r"[A-Za-z0-9]{36,255}"),
    ("GitHub token", "github_pat_", "github_pat_", r"\w{22,255}"),
    ("GitLab token", "gl?-", "gl(?:pat|dt|rt|ptt|cbt|soat|ft|imt)-", r"[\w-]{20,}"),
    ("Slack token", "xox?-", "x(?:ox[abeoprs]|app)-", r"[\w-]{10,}"),
    ("Stripe key", "?k_", "[sr]k_(?:live|test)_", r"[A-Za-z0-9]{16,}"),
    ("Stripe webhook secret", "whsec_", "whsec_", r"[A-Za-z0-9+/]{24,}=*"),
    ("Google API key", "AIza", "AIza", r"[\w-]{35}"),
    ("Google OAuth secret", "GOCSPX-", "GOCSPX-", r"[\w-]{28}"),
    ("Google OAuth token", "ya29.", r"ya29\.", r"[\w-]{20,}"),
    ("npm token", "npm_", "npm_", r"[A-Za-z0-9]{36}"),
    ("package index token", "pypi-", "pypi-AgE", r"[\w-]{50,}"),
    ("RubyGems key", "rubygems_", "rubygems_", r"[0-9a-f]{48}"),
    ("SendGrid key", "SG.", r"SG\.", r"[\w-]{22}\.[\w-]{43}"),
    ("Twilio key", "SK", "SK", r"[0-9a-f]{32}"),
    ("Mailgun key", "key-", "key-", r"[0-9a-f]{32}"),
    ("DigitalOcean token", "do?_v1_", "do[opr]_v1_", r"[0-9a-f]{64}"),
    ("Hugging Face token", "hf_", "hf_", r"[A-Za-z0-9]{34,40}"),
    ("Groq key", "gsk_", "gsk_", r"[A-Za-z0-9]{40,60}"),
    ("xAI key", "xai-", "xai-", r"[A-Za-z0-9]{60,100}"),
    ("Replicate token", "r8_", "r8_", r"[A-Za-z0-9]{37}"),
    ("Perplexity key", "pplx-", "pplx-", r"[A-Za-z0-9]{40,60}"),
    ("Databricks token", "dapi", "dapi", r"[0-9a-f]{32}(?:-[0-9])?"),
    ("Shopify token", "shp?_", "shp(?:at|ca|pa|ss)_", r"[0-9a-fA-F]{32}"),
    ("Docker token", "dckr_pat_", "dckr_pat_", r"[\w-]{20,}"),
    ("Linear key", "lin_api_", "lin_api_", r"[A-Za-z0-9]{32,}"),
    ("Notion token", "ntn_", "ntn_", r"[A-Za-z0-9]{40,}"),
    ("Notion token", "secret_", "secret_", r"[A-Za-z0-9]{43}"),
    ("Cursor key", "key_", "key_", r"[0-9a-f]{64}"),
    ("Cursor key", "crsr_", "crsr_", r"[0-9a-f]{64}"),
    ("Netlify token", "nf?_", "nf[pc]_", r"[A-Za-z0-9]{36}"),
    ("Fly token", "fm?_", "fm[12][ar]?_", r"[A-Za-z0-9+/=]{60,}"),
    ("Figma token", "figd_", "figd_", r"[\w-]{36,}"),
    ("Postman key", "PMAK-", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
    ("Grafana token", "glsa_", "glsa_", r"[A-Za-z0-9]{32}_[0-9a-f]{8}"),
    ("New Relic key", "NRAK-", "NRAK-", r"[A-Z0-9]{27}"),
    ("Sentry token", "sntrys_", "sntrys_", r"[\w+/=]{40,}"),
    ("Supabase token", "sbp_", "sbp_", r"[0-9a-f]{40}"),
    ("Doppler token", "dp.pt.", r"dp\.pt\.", r"[A-Za-z0-9]{40,}"),
    ("PlanetScale token", "pscale_", "pscale_(?:tkn|pw|oauth)_", r"[\w.=-]{32,}"),
    ("Atlassian token", "ATATT3", "ATATT3", r"[\w=-]{100,}"),
    ("Vault token", "hv?.", r"hv[sbr]\.", r"[\w-]{24,}"),
)

# Contexts in which a plain word is a password: a prefilter that is cheap to match, and the pattern that
# captures the word. After "password:" a word may be a type, a state or a label. In a command line, in an
# environment variable or next to a user name it is none of these.
_PASSWORD_CONTEXTS: tuple[tuple[str, str], ...] = (
    (  # environment variables: DB_PASSWORD=word, POSTGRES_PASSWORD: word
        r"(?:PASSWORD|PASSWD|PASSPHRASE|_PASS|_PWD)[\"']?(?:=|: ?)",
        rf"\b(?P<name>[A-Z0-9_]*(?:PASSWORD|PASSWD|PASSPHRASE)|{_SERVICE}(?:PASS|PWD))"
        rf"[\"']?(?:=|: ?)[\"']?{_WORD}",
    ),
    (  # next to a user name, in quotes: "user": "zoe", "password": "word"
        r"(?i:pass(?:word|wd|phrase)?|pwd)\\{0,3}[\"']?\s{0,2}[:=]",
        rf"{_USER}{_NAME_SEPARATOR}\\{{0,3}}[\"'][^\"'\s]{{1,64}}[\"'],\s{{0,40}}\\{{0,3}}[\"']?{_NAME}{_NAME_SEPARATOR}{_QUOTED}",
    ),
    (  # next to a user name, in a URL or a connection string: user=zoe password=word
        r"(?i:pass(?:word|wd|phrase)?|pwd)=",
        rf"{_USER}=[^\s&;\"'=]{{1,64}}[ &;](?:\w{{1,30}}=[^\s&;\"'=]{{1,80}}[ &;]){{0,4}}{_NAME}={_WORD}",
    ),
    (  # in a settings file, on the line after the user name
        r"(?i:pass(?:word|wd|phrase)?|pwd): ",
        rf"{_USER}: [\"']?[\w.@+-]{{1,64}}[\"']?\r?\n\s{{0,40}}{_NAME}: [\"']?{_WORD}[\"']?(?:\r?\n|$)",
    ),
    (  # command-line arguments
        r"(?:--pass|sshpass|mysql|mariadb|redis-cli|curl|login )",
        r"(?:\s--pass(?:word|wd|phrase)?=[\"']?|\bsshpass -p ?[\"']?|\bredis-cli\b[^\n|;]{0,200}?\s-a [\"']?"
        r"|\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|;]{0,200}?\s-p"
        r"|\bcurl\b[^\n|;]{0,300}?\s(?:-u|--user)[ =][\"']?[^\s:\"']+:|\blogin\s+\S+\s+password\s+)" + _WORD,
    ),
    (  # in prose: my password is "word"
        r"(?i:password|passphrase) is",
        r"(?i:\b(?:my|our|her|his|the)(?: \w{1,20})? (?:password|passphrase) is) [\"'`]"
        + _LETTERS
        + r"[\"'`](?P<after>)",
    ),
)


class SecretRule(Struct, frozen=True):
    """One kind of secret and the pattern that matches it."""

    kind: str  # as shown in placeholders and reports
    prefilter: str  # a cheap pattern that matches every text with such a secret
    pattern: str  # the secret is the group "secret", or the whole match
    hint: str = ""  # prefix that all secrets of this kind share
    accepts: Callable[[Mapping[str, str]], bool] | None = None  # receives the groups; "" is the whole match


def _quoted(quote: str, min_chars: int) -> str:
    """Return a pattern for a value in quotes, escaped or not. Only there may it contain any character."""
    start = rf"[\"'\\\]]{{0,4}}\s{{0,4}}(?:=>|:=|=|:)\s{{0,4}}[bru]?\\{{0,3}}{quote}"
    return rf"{start}(?P<secret>[^{quote}\\\s]{{{min_chars},400}})\\{{0,3}}{quote}"


def _accept_named(groups: Mapping[str, str]) -> bool:
    return not groups["after"] and is_plausible(groups["name"], groups["secret"])


def _accept_quoted(groups: Mapping[str, str]) -> bool:
    return is_plausible(groups["name"], groups["secret"], is_quoted=True)


def _accept_word(groups: Mapping[str, str]) -> bool:
    return not groups["after"] and _is_password_word(groups["secret"], groups.get("name", ""))


def _accept_discord(groups: Mapping[str, str]) -> bool:
    return _decode_base64(groups[""].partition(".")[0]).isdigit()


# Where several rules match the same text, the first one wins.
SECRET_RULES: tuple[SecretRule, ...] = (
    SecretRule(
        "private key",
        "PRIVATE KEY",
        # Up to the END line, with any prefix before the lines (line numbers, +); else as far as base64 goes.
        rf"{_BEGIN}(?:(?:-{{0,4}}[^-])*?{_END}|{_BREAK}(?:[A-Za-z0-9+/=]{{16,}}{_BREAK})+)",
        "-----BEGIN",
    ),
    *(SecretRule(kind, first, rf"\b{first}{rest}(?:\b|$)", hint) for kind, hint, first, rest in _PREFIXED),
    SecretRule(
        "AWS access key",
        "A(?:KIA|SIA|BIA|CCA)[A-Z2-7]",
        r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",
        "A?IA",
        lambda groups: not groups[""].endswith("EXAMPLE"),
    ),
    SecretRule(
        "AWS secret key",
        "(?i:aws|secret)",
        r"(?i:(?:aws[a-z_.-]{0,20}|secret[_-]?)(?:access[_-]?)?key)"
        + _SEPARATOR
        + r"(?P<secret>[A-Za-z0-9/+]{40})\b",
        accepts=lambda groups: "EXAMPLE" not in groups["secret"],
    ),
    SecretRule(
        "webhook address",
        r"(?:hooks\.slack|discord(?:app)?|webhook\.office)\.com",
        r"https://(?:hooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]{20,}"
        r"|(?:canary\.|ptb\.)?discord(?:app)?\.com/api/webhooks/[0-9]+/[\w-]{40,}"
        r"|[a-z0-9-]+\.webhook\.office\.com/webhookb2/[\w@/-]{40,})",
        "https://",
    ),
    SecretRule("Mailchimp key", "-us[0-9]", r"\b[0-9a-f]{32}-us[0-9]{1,2}\b"),
    SecretRule("Terraform token", r"\.atlasv1\.", r"\b[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}"),
    SecretRule("Azure client secret", "8Q~", r"[\w~.]{3}8Q~[\w~.-]{34}"),
    SecretRule(
        "Azure key",
        "(?i:AccountKey|SharedAccessKey)=",
        r"(?i:AccountKey|SharedAccessKey)=(?P<secret>[A-Za-z0-9+/]{43,88}={0,2})",
    ),
    SecretRule("Telegram bot token", ":AA", r"\b[0-9]{8,10}:AA[\w-]{33}"),
    SecretRule(
        "Discord bot token",
        r"[MNO][\w-]{22,27}\.[\w-]{6}\.",
        r"\b[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,40}",
        accepts=_accept_discord,
    ),
    SecretRule("JSON web token", "eyJ", r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}", "eyJ"),
    SecretRule(
        "connection string",
        "://[^/@\\s]{0,200}@",
        r"\b[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s:@/\"'`<>]{0,100}:(?P<password>[^\s@/\"'`<>]{1,200})"
        r"@[^\s\"'`<>,;)\]}\\]+",
        accepts=lambda groups: not _is_placeholder(groups["password"]),
    ),
    SecretRule(
        "bearer token",
        "(?i:bearer) ",
        r"(?i:bearer) (?P<secret>[\w.~+/-]{20,}=*)",
        accepts=lambda groups: is_plausible("bearer", groups["secret"]),
    ),
    SecretRule(
        "basic credentials",
        "(?i:basic) ",
        r"(?i:basic) (?P<secret>[A-Za-z0-9+/]{8,}={0,2})",
        accepts=lambda groups: b":" in _decode_base64(groups["secret"]),
    ),
    *(
        SecretRule(
            "password", _PASSWORD_PREFILTER, rf"(?i){_PASSWORD}{_quoted(quote, 6)}", accepts=_accept_quoted
        )
        for quote in _QUOTES
    ),
    SecretRule(
        "password",
        _PASSWORD_PREFILTER,
        rf"(?i){_PASSWORD}(?:{_SEPARATOR}|\s{{1,3}}is:?\s{{1,3}}[\"'`]?)(?P<secret>{_VALUE}{{6,200}})(?P<after>[(\[]?)",
        accepts=_accept_named,
    ),
    SecretRule(
        "password",
        r"(?:--?(?:pass|pwd|p )|\bu(?:ser)? |login )",
        r"(?i)(?:--(?P<name>pass(?:word|wd|phrase)?|pwd)[ =][\"']?|\blogin\s+\S+\s+password\s+"
        r"|\bsshpass -p ?[\"']?|\bcurl\b[^\n|;]{0,300}?\s(?:-u|--user)[ =][\"']?[^\s:\"']+:)"
        r"(?P<secret>[^\s\"']{6,200})",
        accepts=lambda groups: is_plausible("password", groups["secret"]),
    ),
    *(
        SecretRule("password", prefilter, pattern, accepts=_accept_word)
        for prefilter, pattern in _PASSWORD_CONTEXTS
    ),
    *(
        SecretRule("key or token", _KEY_PREFILTER, rf"(?i){_KEY}{_quoted(quote, 16)}", accepts=_accept_quoted)
        for quote in _QUOTES
    ),
    SecretRule(
        "key or token",
        _KEY_PREFILTER,
        rf"(?i){_KEY}(?:{_SEPARATOR}|[ ][\"']?)(?P<secret>{_VALUE}{{16,400}})(?P<after>[(\[]?)",
        accepts=_accept_named,
    ),
)
EMAIL_RULES: tuple[SecretRule, ...] = (
    SecretRule(
        "e-mail address",
        "@[A-Za-z0-9-]+[.]",
        r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,24}\b",
        accepts=lambda groups: not groups[""].startswith("git@"),
    ),
)
PATH_RULES: tuple[SecretRule, ...] = (
    SecretRule(
        "home folder",
        "(?i:home|users)[/\\\\-]",
        r"(?:(?:/home/|/Users/|\b[A-Za-z]:(?:\\{1,2}|/)(?i:users)(?:\\{1,2}|/))(?:[\w.@+-]+)"
        # Claude Code names folders below projects/ after a path with every / replaced by a dash.
        r"|-(?:home|Users)-[A-Za-z0-9_.]+)",
    ),
)


# Tell a secret from types, variables, counts, examples and names of settings

_RULES_BY_CATEGORY: dict[SecretCategory, tuple[SecretRule, ...]] = {
    "secrets": SECRET_RULES,
    "emails": EMAIL_RULES,
    "paths": PATH_RULES,
}

_PLACEHOLDER = re.compile(
    r"x{3,}|\*{3,}|\.{3,}|…|^\$[A-Za-z_{(]|\$\{|\{\{|^\{|^<|^%\w+%|^\[|your|example|changeme|placeholder|redacted"
    r"|dummy|^fake|^sample|^insert|^(?:null|none|undefined|true|false|todo)\b",
    re.IGNORECASE,
)
_PASSWORD_PLACEHOLDER = re.compile(
    r"[${<\[]|\*{3}|\.{3}|…|^x+$|^(?:password|passwd|pass|pwd|secret|token)$", re.IGNORECASE
)
_SECRET_NAME = re.compile(r"password|passwd|secret|token|api_?-?key", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$.-]*")
_DOTTED_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:[.:/-]+[A-Za-z_$][\w$]*)+[!?]?")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_DIGEST = re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128}")
_PATH_OR_URL = re.compile(r"/|\./|~/|https?://|sha\d+[-:]|data:|--|=")
_PASSWORD_NAME_PREFIXES = ("pass", "pwd")
_MIN_PASSWORD_CHARS = 6
_MIN_KEY_CHARS = 16
_MIN_KEY_ENTROPY_BITS = 3  # per character
_MIN_RANDOM_ENTROPY_BITS = 3.5

# Words in these contexts that are no secret: types, states, labels, variables, well-known defaults.
_COMMON_WORDS = """
string number boolean object unknown required optional missing invalid incorrect correct wrong expired empty
hidden masked hashed encrypted stored secret secrets secure passwd password passwords passphrase passwort
kennwort contrasena wachtwoord plaintext undefined changeit changeme example sample placeholder default public
private static return postgres postgresql mariadb mongodb rabbitmq docker vagrant minioadmin administrator
username userpass testpass testing tester developer development production value values variable prompt
interactive disabled enabled passed failed success failure nullable nonnull redacted removed unset unchanged
forgotten current strong random generated somepassword mypassword yourpassword dbpassword thepassword
newpassword oldpassword supersecret topsecret verysecret notasecret foobar foobarbaz
"""
_NOT_PASSWORDS = frozenset(_COMMON_WORDS.split())
_CAMEL_CASE = re.compile(r"[a-z]+[A-Z]")
_MESSAGE_NAME = re.compile(  # names of user-interface texts about passwords
    r"(?:WRONG|INVALID|INCORRECT|ENTER|FORGOT|RESET|CHANGE|NEW|OLD|CONFIRM|REPEAT|SHOW|HIDE|MISSING|WEAK|NO|SET"
    r"|UPDATE|CURRENT|YOUR|BAD)_"
)


def is_plausible(name: str, value: str, *, is_quoted: bool = False) -> bool:
    """Return whether the value after a name like "token" is a secret, not code, prose or a placeholder."""
    is_password = name.lower().startswith(_PASSWORD_NAME_PREFIXES)
    value = value if is_quoted else value.rstrip(".,:!?")
    has_letter = any(char.isalpha() for char in value)
    has_digit = any(char.isdigit() for char in value)
    if not has_letter or _PLACEHOLDER.search(value) or _PATH_OR_URL.match(value):
        return False
    if (
        _SECRET_NAME.search(value)
        and _IDENTIFIER.fullmatch(value)
        and not (is_password and is_quoted and has_digit)
    ):
        return False  # a variable named after the secret it holds
    if _DOTTED_NAME.fullmatch(value) and not any(_is_random(part) for part in re.split(r"[.:/-]", value)):
        return False
    if is_password:
        has_punctuation = any(not char.isalnum() and char not in "_.-/:=" for char in value)
        return len(value) >= _MIN_PASSWORD_CHARS and (has_digit or has_punctuation)
    if len(value) < _MIN_KEY_CHARS or not has_digit or _entropy(value) < _MIN_KEY_ENTROPY_BITS:
        return False
    return not (name.lower() == "token" and (_UUID.fullmatch(value) or _DIGEST.fullmatch(value)))


def _is_random(part: str) -> bool:
    return (
        len(part) >= _MIN_KEY_CHARS
        and any(map(str.isdigit, part))
        and _entropy(part) > _MIN_RANDOM_ENTROPY_BITS
    )


def _entropy(value: str) -> float:
    """Return the Shannon entropy in bits per character."""
    return -sum(n / len(value) * log2(n / len(value)) for n in Counter(value).values())


def _is_placeholder(password: str) -> bool:
    """Return whether the text only marks the position of a password."""
    return _PASSWORD_PLACEHOLDER.search(password) is not None


def _is_password_word(word: str, name: str = "") -> bool:
    """Return whether a word in such a context is a password, not a variable or a word about passwords."""
    if _MESSAGE_NAME.match(name) or _CAMEL_CASE.match(word):
        return False
    return word.lower() not in _NOT_PASSWORDS and len(set(word.lower())) > 2


def _decode_base64(text: str) -> bytes:
    """Decode base64, also the URL-safe alphabet; empty if the text is not base64."""
    try:
        return b64decode(text + "=" * (-len(text) % 4), altchars=b"-_" if set("-_") & set(text) else b"+/")
    except (Base64Error, ValueError):
        return b""
