"""What is redacted is redacted everywhere, under one number, and never said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from backscroll.model import Attachment, Edit, Hunk, ToolCall
from backscroll.model.redaction import SecretLocation
from backscroll.redact.redactor import Redactor
from backscroll.redact.scanner import RULES_BY_CATEGORY
from backscroll.render.json import encode_json, message_document, secrets_document, summary_document
from tests.render.sessions import SUMMARY, message
from tests.render.tokens import TOKENS, made, pem

TOKEN = "ghp" + "_" + made(36)
HERE = SecretLocation("claude-code:5e551011", 0)
CASES = [(around, secret) for cases in TOKENS.values() for around, secret in cases]


def everywhere(text: str) -> bytes:
    """A message with this text in every field, redacted, as JSON."""
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
    redactor = Redactor(RULES_BY_CATEGORY)
    redactor.scan([one])
    summary = replace(SUMMARY, title=text, first_message_preview=text, workspace_path=text)
    return encode_json(
        [
            message_document(redactor.redact_message(one, "r", 0), 0),
            summary_document(redactor.redact_summary(summary)),
        ]
    )


@pytest.mark.parametrize(("around", "secret"), CASES)
def test_a_secret_is_nowhere_in_what_was_redacted(around: str, secret: str) -> None:
    told = everywhere(around.format(secret))
    assert b"[redacted: " in told
    for piece in filter(None, secret.split("\n")):
        assert encode_json(piece)[1:-2] not in told


def test_the_same_secret_has_the_same_number() -> None:
    redactor = Redactor()
    other = "ghp" + "_" + made(36, seed=2)
    assert redactor.redact_text(f"{TOKEN} {other} {TOKEN}", HERE) == (
        "[redacted: GitHub token #1] [redacted: GitHub token #2] [redacted: GitHub token #1]"
    )
    (first, second) = redactor.found_secrets()
    assert (first.number, first.count, second.number, second.count) == (1, 2, 2, 1)
    assert first.locations == (HERE,)


def test_a_password_is_replaced_also_where_nobody_calls_it_one() -> None:
    password = "tide" + "Table77"
    said = [message("user", f"try {password}"), message("user", f"password: {password}")]
    redactor = Redactor()
    redactor.scan(said)
    assert redactor.redact_message(said[0], "r", 0).content == "try [redacted: password #1]"


def test_a_short_one_is_replaced_only_where_it_is_called_a_password() -> None:
    redactor = Redactor()
    redactor.scan([message("user", "password: kelp" + "12")])
    assert redactor.redact_text("kelp12 grows here", HERE) == "kelp12 grows here"


def test_an_argument_that_is_called_a_secret_is_one() -> None:
    redactor = Redactor()
    params = redactor.redact_value(
        {"login": {"password": "sea" + "gull9"}, "apiKey": made(30), "token": "x"}, HERE
    )
    assert params == {
        "login": {"password": "[redacted: password #1]"},
        "apiKey": "[redacted: key or token #1]",
        "token": "x",
    }


def test_a_title_cut_in_the_middle_of_a_secret_does_not_show_its_beginning() -> None:
    redactor = Redactor()
    redactor.scan([message("user", f"Why is {TOKEN} refused?")])
    cut = redactor.redact_summary(replace(SUMMARY, title=f"Why is {TOKEN[:12]}…"))
    assert cut.title == "Why is [redacted: GitHub token #1]"


def test_marks_do_not_hide_a_secret() -> None:
    hidden = TOKEN[:10] + "\u200b" + TOKEN[10:15] + "\x1b[31m" + TOKEN[15:]
    assert Redactor().redact_text(hidden, HERE) == "[redacted: GitHub token #1]"


def test_a_key_shown_with_line_numbers_is_a_key() -> None:
    numbered = "\n".join(f"{number:>6}→{line}" for number, line in enumerate(pem().split("\n"), start=1))
    assert Redactor().redact_text(numbered, HERE) == "     1→[redacted: private key #1]"


def test_a_list_of_secrets_says_none() -> None:
    redactor = Redactor()
    redactor.redact_text(f"{TOKEN} password: hunter" + "2", HERE)
    document = secrets_document(redactor.found_secrets())
    assert [(one["kind"], one["hint"]) for one in document["data"]] == [
        ("GitHub token", "gh?_… (40 characters)"),
        ("password", "(7 characters)"),
    ]
    assert TOKEN[4:].encode() not in encode_json(document)


@given(st.text(), st.sampled_from(CASES), st.text())
def test_what_was_redacted_holds_nothing_more_to_redact(
    before: str, case: tuple[str, str], after: str
) -> None:
    redactor = Redactor(RULES_BY_CATEGORY)
    once = redactor.redact_text(f"{before}\n{case[0].format(case[1])}\n{after}", HERE)
    assert case[1] not in once
    assert Redactor(RULES_BY_CATEGORY).redact_text(once, HERE) == once
