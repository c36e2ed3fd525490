"""Secrets are found by their format or context; text that only looks like secret is left alone."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.model.export import SECRET_CATEGORIES
from backscroll.redact import SecretScanner
from tests.render.tokens import TOKENS, random_text

SCANNER = SecretScanner()
CASES = [(kind, around, secret) for kind, cases in TOKENS.items() for around, secret in cases]

HARMLESS = [
    "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
    "token: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
    "session 0f3c9a12-5b1d-4c2e-9a51-6f1b2c3d4e5f",
    "token=0f3c9a12-5b1d-4c2e-9a51-6f1b2c3d4e5f",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    '"integrity": "sha512-' + random_text(86) + '=="',
    "data:image/png;base64," + random_text(4000, string.ascii_letters + string.digits + "+/"),
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
    "-----BEGIN PUBLIC KEY-----\n" + random_text(64) + "\n-----END PUBLIC KEY-----",
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
def test_a_secret_is_found_completely(kind: str, around: str, secret: str) -> None:
    text = f"å before\n{around.format(secret)}\nafter"
    found = SCANNER.find(text)
    assert [secret.kind for secret in found] == [kind]
    assert secret.rstrip(".") in found[0].value or found[0].value in secret
    assert secret not in text.encode()[: found[0].start].decode() + text.encode()[found[0].end :].decode()


@pytest.mark.parametrize("text", HARMLESS)
def test_text_that_only_looks_like_a_secret_is_not_found(text: str) -> None:
    assert SCANNER.find(text) == []


def test_email_addresses_and_home_folders_are_found_on_request() -> None:
    text = r"zoe@ferry.example wrote /home/zoe/ferry, /Users/zoe/x and C:\Users\zoe\x; git@github.com did not"
    assert SCANNER.find(text) == []
    scanner = SecretScanner(SECRET_CATEGORIES)
    assert [(secret.kind, secret.value) for secret in scanner.find(text)] == [
        ("e-mail address", "zoe@ferry.example"),
        ("home folder", "/home/zoe"),
        ("home folder", "/Users/zoe"),
        ("home folder", r"C:\Users\zoe"),
    ]
    assert [secret.value for secret in scanner.find("~/.claude/projects/-home-zoe-ferry/a.jsonl")] == [
        "-home-zoe"
    ]


@given(st.text(), st.sampled_from(CASES), st.text())
def test_positions_never_overlap_and_are_within_the_text(
    before: str, case: tuple[str, str, str], after: str
) -> None:
    text = before + case[1].format(case[2]) + after
    size = len(text.encode())
    last = 0
    for secret in SecretScanner(SECRET_CATEGORIES).find(text):
        assert last <= secret.start < secret.end <= size
        assert text.encode()[secret.start : secret.end].decode("utf-8", "replace") == secret.value
        last = secret.end
