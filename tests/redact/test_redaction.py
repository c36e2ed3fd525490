"""What is redacted is redacted everywhere, under one number, and never said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from backscroll.model import Attachment, Edit, Hunk, ToolCall
from backscroll.model.redaction import SecretLocation
from backscroll.redact.redactor import Redaction
from backscroll.redact.scanner import KINDS
from backscroll.render.json import encoded, message_document, secrets_document, summary_document
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
    redaction = Redaction(KINDS)
    redaction.learn([one])
    summary = replace(SUMMARY, title=text, first_message_preview=text, workspace_path=text)
    return encoded(
        [message_document(redaction.message(one, "r", 0), 0), summary_document(redaction.summary(summary))]
    )


@pytest.mark.parametrize(("around", "secret"), CASES)
def test_a_secret_is_nowhere_in_what_was_redacted(around: str, secret: str) -> None:
    told = everywhere(around.format(secret))
    assert b"[redacted: " in told
    for piece in filter(None, secret.split("\n")):
        assert encoded(piece)[1:-2] not in told


def test_the_same_secret_has_the_same_number() -> None:
    redaction = Redaction()
    other = "ghp" + "_" + made(36, seed=2)
    assert redaction.text(f"{TOKEN} {other} {TOKEN}", HERE) == (
        "[redacted: GitHub token #1] [redacted: GitHub token #2] [redacted: GitHub token #1]"
    )
    (first, second) = redaction.replaced()
    assert (first.number, first.count, second.number, second.count) == (1, 2, 2, 1)
    assert first.places == (HERE,)


def test_a_password_is_replaced_also_where_nobody_calls_it_one() -> None:
    password = "tide" + "Table77"
    said = [message("user", f"try {password}"), message("user", f"password: {password}")]
    redaction = Redaction()
    redaction.learn(said)
    assert redaction.message(said[0], "r", 0).content == "try [redacted: password #1]"


def test_a_short_one_is_replaced_only_where_it_is_called_a_password() -> None:
    redaction = Redaction()
    redaction.learn([message("user", "password: kelp" + "12")])
    assert redaction.text("kelp12 grows here", HERE) == "kelp12 grows here"


def test_an_argument_that_is_called_a_secret_is_one() -> None:
    redaction = Redaction()
    params = redaction.value({"login": {"password": "sea" + "gull9"}, "apiKey": made(30), "token": "x"}, HERE)
    assert params == {
        "login": {"password": "[redacted: password #1]"},
        "apiKey": "[redacted: key or token #1]",
        "token": "x",
    }


def test_a_title_cut_in_the_middle_of_a_secret_does_not_show_its_beginning() -> None:
    redaction = Redaction()
    redaction.learn([message("user", f"Why is {TOKEN} refused?")])
    cut = redaction.summary(replace(SUMMARY, title=f"Why is {TOKEN[:12]}…"))
    assert cut.title == "Why is [redacted: GitHub token #1]"


def test_marks_do_not_hide_a_secret() -> None:
    hidden = TOKEN[:10] + "\u200b" + TOKEN[10:15] + "\x1b[31m" + TOKEN[15:]
    assert Redaction().text(hidden, HERE) == "[redacted: GitHub token #1]"


def test_a_key_shown_with_line_numbers_is_a_key() -> None:
    numbered = "\n".join(f"{number:>6}→{line}" for number, line in enumerate(pem().split("\n"), start=1))
    assert Redaction().text(numbered, HERE) == "     1→[redacted: private key #1]"


def test_a_list_of_secrets_says_none() -> None:
    redaction = Redaction()
    redaction.text(f"{TOKEN} password: hunter" + "2", HERE)
    document = secrets_document(redaction.replaced())
    assert [(one["kind"], one["hint"]) for one in document["data"]] == [
        ("GitHub token", "gh?_… (40 characters)"),
        ("password", "(7 characters)"),
    ]
    assert TOKEN[4:].encode() not in encoded(document)


@given(st.text(), st.sampled_from(CASES), st.text())
def test_what_was_redacted_holds_nothing_more_to_redact(
    before: str, case: tuple[str, str], after: str
) -> None:
    redaction = Redaction(KINDS)
    once = redaction.text(f"{before}\n{case[0].format(case[1])}\n{after}", HERE)
    assert case[1] not in once
    assert Redaction(KINDS).text(once, HERE) == once
