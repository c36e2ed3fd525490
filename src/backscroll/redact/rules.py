"""Rules that recognize keys, tokens and passwords.

Most issuers give their keys a recognizable format: a prefix, a length, an alphabet. A secret without such
a format is recognized by the name before it.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct

from backscroll.redact.heuristics import decode_base64, is_placeholder, is_plausible
from backscroll.redact.password_rules import PASSWORD_CONTEXTS, is_password_word

__all__ = ["EMAIL_RULES", "PATH_RULES", "SECRET_RULES", "SecretRule"]


class SecretRule(Struct, frozen=True):
    """One kind of secret and the pattern that matches it."""

    kind: str  # as shown in placeholders and reports
    prefilter: str  # a cheap pattern that matches every text with such a secret
    pattern: str  # the secret is the group "secret", or the whole match
    hint: str = ""  # prefix that all secrets of this kind share
    accepts: Callable[[Mapping[str, str]], bool] | None = None  # receives the groups; "" is the whole match


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

_BEGIN, _END = (rf"-----{word} (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----" for word in ("BEGIN", "END"))
_BREAK = r"(?:\s|\\[nr])*"
_SEPARATOR = r"[\"'\\\]]{0,4}\s{0,4}(?:=>|:=|=|:)\s{0,4}[\"'\\`]{0,3}"
_VALUE = r"[^\s\"'`,;<>(){}\[\]\\]"
_PASSWORD = r"(?P<name>passw(?:or)?d|passphrase|pwd)[0-9]{0,2}"
_PASSWORD_PREFILTER = r"(?i:passw(?:or)?d|passphrase|pwd)[0-9]{0,2}(?:[\"'\\\]]{0,4}\s{0,4}[:=]|\s{1,3}is)"
_KEY = (
    r"(?P<name>secret|token|credential"
    r"|(?:api|access|auth|private|secret|signing|encryption|account|master|service|license)[_-]?key)[0-9]{0,2}"
)
_KEY_PREFILTER = r"(?i:secret|token|credential|key)[0-9]{0,2}(?:[\"'\\\]]{0,4}\s{0,4}[:=]|[ ])"


_QUOTES = "\"'`"


def _quoted(quote: str, min_chars: int) -> str:
    """Return a pattern for a value in quotes, escaped or not. Only there may it contain any character."""
    start = rf"[\"'\\\]]{{0,4}}\s{{0,4}}(?:=>|:=|=|:)\s{{0,4}}[bru]?\\{{0,3}}{quote}"
    return rf"{start}(?P<secret>[^{quote}\\\s]{{{min_chars},400}})\\{{0,3}}{quote}"


def _accept_named(groups: Mapping[str, str]) -> bool:
    return not groups["after"] and is_plausible(groups["name"], groups["secret"])


def _accept_quoted(groups: Mapping[str, str]) -> bool:
    return is_plausible(groups["name"], groups["secret"], is_quoted=True)


def _accept_word(groups: Mapping[str, str]) -> bool:
    return not groups["after"] and is_password_word(groups["secret"], groups.get("name", ""))


def _accept_discord(groups: Mapping[str, str]) -> bool:
    return decode_base64(groups[""].partition(".")[0]).isdigit()


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
        accepts=lambda groups: not is_placeholder(groups["password"]),
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
        accepts=lambda groups: b":" in decode_base64(groups["secret"]),
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
        for prefilter, pattern in PASSWORD_CONTEXTS
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
