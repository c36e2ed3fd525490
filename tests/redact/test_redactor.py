"""A secret is replaced everywhere, with the same number, and never shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from backscroll.documents import message_document, to_document
from backscroll.model.export import SECRET_CATEGORIES, SecretLocation
from backscroll.model.message import Attachment, Edit, Hunk, ToolCall
from backscroll.redact import Redactor
from backscroll.render.json import encode_json, secrets_document
from tests.render.sessions import SUMMARY, message
from tests.render.tokens import TOKENS, pem, random_text

TOKEN = "ghp" + "_" + random_text(36)
HERE = SecretLocation("claude-code:5e551011", 0)
CASES = [(around, secret) for cases in TOKENS.values() for around, secret in cases]


def redact_everywhere(text: str) -> bytes:
    """Return the JSON of a redacted message and summary that contain the text in every field."""
    call = ToolCall(
        id="c",
        name="Bash",
        params={"command": text, "deep": [{"x": text}], text: 1},
        result=text,
        status="completed",
        edits=(Edit(text, (Hunk(tuple(text.split("\n")), tuple(text.split("\n"))),)),),
    )
    one = message(
        "tool", text, tool=call, cwd=text, git_branch=text, attachments=(Attachment("file", text, path=text),)
    )
    redactor = Redactor(SECRET_CATEGORIES)
    redactor.scan([one])
    summary = replace(SUMMARY, title=text, first_message_preview=text, workspace_path=text)
    return encode_json(
        [
            message_document(redactor.redact_message(one, "r", 0), 0),
            to_document(redactor.redact_summary(summary)),
        ]
    )


@pytest.mark.parametrize(("around", "secret"), CASES)
def test_a_secret_is_replaced_in_every_field(around: str, secret: str) -> None:
    document = redact_everywhere(around.format(secret))
    assert b"[redacted: " in document
    for piece in filter(None, secret.split("\n")):
        assert encode_json(piece)[1:-2] not in document


def test_the_same_secret_has_the_same_number() -> None:
    redactor = Redactor()
    other = "ghp" + "_" + random_text(36, seed=2)
    assert redactor.redact_text(f"{TOKEN} {other} {TOKEN}", HERE) == (
        "[redacted: GitHub token #1] [redacted: GitHub token #2] [redacted: GitHub token #1]"
    )
    (first, second) = redactor.found_secrets()
    assert (first.number, first.count, second.number, second.count) == (1, 2, 2, 1)
    assert first.locations == (HERE,)


def test_a_password_is_also_replaced_where_it_has_no_name() -> None:
    password = "tide" + "Table77"
    messages = [message("user", f"try {password}"), message("user", f"password: {password}")]
    redactor = Redactor()
    redactor.scan(messages)
    assert redactor.redact_message(messages[0], "r", 0).content == "try [redacted: password #1]"


def test_a_short_password_is_replaced_only_next_to_its_name() -> None:
    redactor = Redactor()
    redactor.scan([message("user", "password: kelp" + "12")])
    assert redactor.redact_text("kelp12 grows here", HERE) == "kelp12 grows here"


def test_an_argument_with_the_name_of_a_secret_is_replaced() -> None:
    redactor = Redactor()
    params = redactor.redact_value(
        {"login": {"password": "sea" + "gull9"}, "apiKey": random_text(30), "token": "x"}, HERE
    )
    assert params == {
        "login": {"password": "[redacted: password #1]"},
        "apiKey": "[redacted: key or token #1]",
        "token": "x",
    }


def test_a_title_truncated_inside_a_secret_does_not_show_its_beginning() -> None:
    redactor = Redactor()
    redactor.scan([message("user", f"Why is {TOKEN} refused?")])
    truncated = redactor.redact_summary(replace(SUMMARY, title=f"Why is {TOKEN[:12]}…"))
    assert truncated.title == "Why is [redacted: GitHub token #1]"


def test_invisible_characters_do_not_hide_a_secret() -> None:
    hidden = TOKEN[:10] + "\u200b" + TOKEN[10:15] + "\x1b[31m" + TOKEN[15:]
    assert Redactor().redact_text(hidden, HERE) == "[redacted: GitHub token #1]"


def test_a_private_key_with_line_numbers_is_found() -> None:
    numbered = "\n".join(f"{number:>6}→{line}" for number, line in enumerate(pem().split("\n"), start=1))
    assert Redactor().redact_text(numbered, HERE) == "     1→[redacted: private key #1]"


def test_the_report_of_secrets_contains_none_of_them() -> None:
    redactor = Redactor()
    redactor.redact_text(f"{TOKEN} password: hunter" + "2", HERE)
    document = secrets_document(redactor.found_secrets())
    assert [(secret["kind"], secret["hint"]) for secret in document["data"]] == [
        ("GitHub token", "gh?_… (40 characters)"),
        ("password", "(7 characters)"),
    ]
    assert TOKEN[4:].encode() not in encode_json(document)


@given(st.text(), st.sampled_from(CASES), st.text())
def test_redacted_text_contains_no_more_secrets(before: str, case: tuple[str, str], after: str) -> None:
    redactor = Redactor(SECRET_CATEGORIES)
    once = redactor.redact_text(f"{before}\n{case[0].format(case[1])}\n{after}", HERE)
    assert case[1] not in once
    assert Redactor(SECRET_CATEGORIES).redact_text(once, HERE) == once
