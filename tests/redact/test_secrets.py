"""Secrets are found by what they are, and what only looks like one is left alone."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.redact.scanner import RULES_BY_CATEGORY, SecretScanner
from tests.render.tokens import TOKENS, made

FINDER = SecretScanner()
CASES = [(kind, around, secret) for kind, cases in TOKENS.items() for around, secret in cases]

HARMLESS = [
    "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
    "token: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
    "session 0f3c9a12-5b1d-4c2e-9a51-6f1b2c3d4e5f",
    "token=0f3c9a12-5b1d-4c2e-9a51-6f1b2c3d4e5f",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    '"integrity": "sha512-' + made(86) + '=="',
    "data:image/png;base64," + made(4000, string.ascii_letters + string.digits + "+/"),
    "input_tokens: 123456, max_tokens=4096, token_count: 99999999999999999999",
    "password: str | None = None",
    "def login(password: str, token: SecretStr) -> None:",
    "token = os.environ['GITHUB_TOKEN']",
    "const token = await getToken2(user.id, request1)",
    "const privateKey = secp256k1.utils.randomPrivateKey();",
    "password=${DB_PASSWORD} secret: ${{ secrets.DEPLOY_KEY_2 }}",
    "password: <your-password-1>",
    "api_key: YOUR_API_KEY_12345678",
    "postgres://user:${PASSWORD}@localhost/db and redis://:<password>@host",
    "https://example.com/a:b@c and mailto:zoe@example.com",
    "git@github.com:zoe/ferry.git",
    "AKIAIOSFODNN7" + "EXAMPLE",
    "the token is expired; the secret is to keep going; password is required",
    "Basic authentication, basic understanding, bearer of bad news: nothing",
    "token budget 2026 and key 1234567890123456",
    "sk-learn-contrib and sk-toggleable__control and hf_hub_download",
    "primary_key=True, cache_key = compute_cache_key_v2(a1)",
    "-----BEGIN PUBLIC KEY-----\n" + made(64) + "\n-----END PUBLIC KEY-----",
    "eyJ is how they begin",
    "DB_PASSWORD: string; POSTGRES_PASSWORD=postgres PASSWORD=changeme",
    'INVALID_PASSWORD: "Falsch", RESET_PASSWORD="Neues"',
    '{ username: string, password: string } and {"user": "zoe", "password": "hashed"}',
    "login(username=name, password=password) and connect(user=user, password=hashedPassword)",
    "mysql -u root -p ferry && docker login -u zoe --password-stdin",
    "the password is wrong; the password is `required`; password: hidden",
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "around", "secret"), CASES, ids=[f"{c[0]} {i}" for i, c in enumerate(CASES)]
)
def test_a_secret_is_found_whole(kind: str, around: str, secret: str) -> None:
    text = f"å before\n{around.format(secret)}\nafter"
    found = FINDER.find(text)
    assert [one.kind for one in found] == [kind]
    assert secret.rstrip(".") in found[0].value or found[0].value in secret
    assert secret not in text.encode()[: found[0].start].decode() + text.encode()[found[0].end :].decode()


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_a_secret_is_none(text: str) -> None:
    assert FINDER.find(text) == []


def test_addresses_and_home_folders_are_found_on_request() -> None:
    text = r"zoe@ferry.example wrote /home/zoe/ferry, /Users/zoe/x and C:\Users\zoe\x; git@github.com did not"
    assert FINDER.find(text) == []
    everything = SecretScanner(RULES_BY_CATEGORY)
    assert [(one.kind, one.value) for one in everything.find(text)] == [
        ("e-mail address", "zoe@ferry.example"),
        ("home folder", "/home/zoe"),
        ("home folder", "/Users/zoe"),
        ("home folder", r"C:\Users\zoe"),
    ]
    assert [one.value for one in everything.find("~/.claude/projects/-home-zoe-ferry/a.jsonl")] == [
        "-home-zoe"
    ]


@given(st.text(), st.sampled_from(CASES), st.text())
def test_places_never_overlap_and_lie_in_the_text(
    before: str, case: tuple[str, str, str], after: str
) -> None:
    text = before + case[1].format(case[2]) + after
    size = len(text.encode())
    last = 0
    for one in SecretScanner(RULES_BY_CATEGORY).find(text):
        assert last <= one.start < one.end <= size
        assert text.encode()[one.start : one.end].decode("utf-8", "replace") == one.value
        last = one.end
