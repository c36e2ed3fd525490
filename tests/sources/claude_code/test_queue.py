"""Prompts that were queued while a turn was running: each is emitted once."""

from pathlib import Path

import pytest

from backscroll.testing.claude_code import Transcript, blocks
from tests.sources.claude_code.read_helpers import read_in_two_steps, read_session, texts_of

NOTIFICATION = (
    "<task-notification><task-id>a1</task-id><tool-use-id>toolu_9</tool-use-id></task-notification>"
)


def test_an_attached_prompt_that_begins_like_json_is_a_user_message(tmp_path: Path) -> None:
    text = '{"tz": "Oslo"} is wrong, fix it'
    session = Transcript().user("go")
    session.attachment("queued_command", prompt=text, commandMode="prompt", origin={"kind": "human"})
    assert texts_of(read_session(session, tmp_path).messages, "user") == ["go", text]


def test_a_queued_prompt_that_begins_like_json_is_a_user_message(tmp_path: Path) -> None:
    text = '{"tz": 1} fix'
    session = Transcript(version="2.1.50").user("go").queue("enqueue", text).queue("remove")
    assert texts_of(read_session(session, tmp_path).messages, "user") == ["go", text]


def test_images_of_a_queued_prompt_are_attachments(tmp_path: Path) -> None:
    prompt = [blocks.text("see"), blocks.image(b"x" * 30)]
    delivered = Transcript().user("go")
    delivered.attachment("queued_command", prompt=prompt, commandMode="prompt", origin={"kind": "human"})
    waiting = Transcript().user("go").queue("enqueue", prompt)
    for session in (delivered, waiting):
        message = read_session(session, tmp_path).messages[-1]
        assert (message.role, message.content) == ("user", "see")
        assert [(a.kind, a.size) for a in message.attachments] == [("image", 30)]


def test_a_queued_command_that_was_run_is_emitted_once(tmp_path: Path) -> None:
    session = Transcript().user("go").queue("enqueue", "/compact keep! it").queue("dequeue")
    session.command("compact", "keep! it", stdout="done")
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user") == ["go"]
    assert "/compact keep! it" in texts_of(messages, "system")


def test_a_queued_shell_command_that_was_run_is_emitted_once(tmp_path: Path) -> None:
    session = Transcript().user("go").queue("enqueue", "!ls -l").queue("dequeue").bash_mode("ls -l", "a")
    assert texts_of(read_session(session, tmp_path).messages, "user") == ["go"]


def test_removing_a_notification_keeps_the_user_prompt_in_the_queue(tmp_path: Path) -> None:
    session = (
        Transcript(version="2.1.50").user("go").queue("enqueue", "my words").queue("enqueue", NOTIFICATION)
    )
    session.queue("remove", NOTIFICATION).queue("dequeue").user("my words").assistant("ok")
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user", active=False) == ["go", "my words"]


def test_the_delivery_of_a_prompt_replaces_the_message_from_the_queue(tmp_path: Path) -> None:
    session = Transcript(version="2.1.50").user("go").queue("enqueue", "my words").queue("remove")
    session.user("my words").assistant("ok")
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user", active=False) == ["go", "my words"]
    assert [message.kind for message in messages if message.role == "user"] == [None, None]


def test_a_text_that_is_queued_repeatedly_is_emitted_once(tmp_path: Path) -> None:
    session = Transcript(version="2.1.50").user("go")
    for _ in range(100):
        session.queue("enqueue", "again").queue("remove")
    assert texts_of(read_session(session, tmp_path).messages, "user") == ["go", "again"]


@pytest.mark.parametrize("separator", ["\n", "\n\n", " \n"])
@pytest.mark.parametrize("operation", ["dequeue", "remove"])
def test_prompts_that_are_delivered_as_one_are_emitted_once(
    tmp_path: Path, separator: str, operation: str
) -> None:
    session = Transcript(version="2.1.50").user("go")
    session.queue("enqueue", "first\nof two lines").queue("enqueue", "second").queue("enqueue", "third")
    session.queue(operation).queue(operation).queue(operation)
    joined = separator.join(["first\nof two lines", "second", "third"])
    session.user(joined).assistant("ok")
    assert texts_of(read_session(session, tmp_path).messages, "user") == ["go", joined]


def test_a_delivered_text_with_other_parts_does_not_deliver_queued_prompts(tmp_path: Path) -> None:
    for joined in ("first\nsecond and more", "before\nfirst\nsecond", "first second", "first\nsec"):
        session = Transcript(version="2.1.50").user("go")
        session.queue("enqueue", "first").queue("enqueue", "second")
        session.user(joined).assistant("ok")
        texts = texts_of(read_session(session, tmp_path).messages, "user")
        assert sorted(texts) == sorted(["go", joined, "first", "second"])


def test_prompts_with_a_common_prefix_are_delivered_only_if_they_make_up_the_text(tmp_path: Path) -> None:
    session = Transcript(version="2.1.50").user("go")
    for text in ("a", "a\nb", "a\nb\nc", "d"):
        session.queue("enqueue", text)
    session.user("a\nb\nd").assistant("ok")
    assert sorted(texts_of(read_session(session, tmp_path).messages, "user")) == [
        "a",
        "a\nb\nc",
        "a\nb\nd",
        "go",
    ]


def test_prompts_read_before_their_joint_delivery_are_emitted_once(
    tmp_path: Path,
) -> None:
    session = Transcript(version="2.1.50").user("go").queue("enqueue", "first").queue("enqueue", "second")
    path = session.write(tmp_path)
    waiting = path.stat().st_size
    path = session.user("first\nsecond").assistant("ok").write(tmp_path)
    (parsed,) = read_in_two_steps(path, waiting).sessions
    assert texts_of(parsed.messages, "user") == ["go", "first\nsecond"]


def test_a_dequeued_prompt_that_is_delivered_in_another_spelling_is_emitted_once(tmp_path: Path) -> None:
    session = Transcript(version="2.1.212").queue("enqueue", "/cost").queue("dequeue")
    session.command("usage", stdout="$0.10").queue("enqueue", "and now?").queue("dequeue")
    session.user("and now?").assistant("fog")
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user", active=False) == ["and now?"]
    assert "/usage" in texts_of(messages, "system")


def test_a_prompt_that_is_read_before_its_delivery_in_another_spelling_is_emitted_once(
    tmp_path: Path,
) -> None:
    session = Transcript(version="2.1.212").user("go").queue("enqueue", "/cost").queue("dequeue")
    waiting = session.write(tmp_path).stat().st_size
    path = session.command("usage", stdout="$0.10").write(tmp_path)
    (parsed,) = read_in_two_steps(path, waiting).sessions
    assert texts_of(parsed.messages, "user") == ["go"]
    assert "/usage" in texts_of(parsed.messages, "system")


def test_a_prompt_that_waits_at_the_end_of_a_read_is_delivered_in_another_spelling(tmp_path: Path) -> None:
    session = Transcript(version="2.1.212").user("go").queue("enqueue", "/cost")
    waiting = session.write(tmp_path).stat().st_size
    path = session.queue("dequeue").command("usage", stdout="$0.10").write(tmp_path)
    (parsed,) = read_in_two_steps(path, waiting).sessions
    assert texts_of(parsed.messages, "user") == ["go"]
    assert "/usage" in texts_of(parsed.messages, "system")


def test_a_refused_command_is_emitted_before_the_reason(tmp_path: Path) -> None:
    """Versions up to 2.1.105 write the command only into the queue."""
    session = Transcript(version="2.1.105").user("go").assistant("ok")
    session.queue("enqueue", "/nosuch foo").queue("dequeue")
    session.meta("<local-command-caveat>x</local-command-caveat>").user_line("Unknown skill: nosuch")
    session.queue("enqueue", "and now?").queue("dequeue").user("and now?").assistant("fog")
    messages = read_session(session, tmp_path).messages
    texts = [(message.role, message.content) for message in messages if message.kind != "caveat"]
    assert texts == [
        ("user", "go"),
        ("assistant", "ok"),
        ("system", "/nosuch foo"),
        ("system", "Unknown skill: nosuch"),
        ("user", "and now?"),
        ("assistant", "fog"),
    ]


def test_a_dequeued_prompt_without_any_later_line_is_emitted(tmp_path: Path) -> None:
    session = Transcript(version="2.1.212").user("go").assistant("ok")
    session.queue("enqueue", "and now?").queue("dequeue")
    assert texts_of(read_session(session, tmp_path).messages, "user") == ["go", "and now?"]


def test_a_dequeued_notification_does_not_deliver_a_prompt(tmp_path: Path) -> None:
    session = Transcript(version="2.1.212").user("go").queue("enqueue", NOTIFICATION)
    session.queue("enqueue", "my words").queue("dequeue").user("else").assistant("ok")
    assert sorted(texts_of(read_session(session, tmp_path).messages, "user")) == ["else", "go", "my words"]


def test_a_prompt_that_was_taken_back_is_not_a_prompt_but_kept(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant("working").queued("never mind", delivered="withdrawn")
    session.assistant("done").user("next").assistant("ok")
    path = session.write(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    for count in range(len(lines) + 1):
        messages = read_in_two_steps(path, len(b"".join(lines[:count]))).sessions[0].messages
        assert texts_of(messages, "user") == ["go", "next"], count
        assert [m.content for m in messages if m.kind == "withdrawn"] == ["never mind"], count


@pytest.mark.parametrize("is_queued_again", [True, False])
def test_a_prompt_that_was_taken_back_and_sent_is_emitted_once(tmp_path: Path, is_queued_again: bool) -> None:
    session = Transcript().user("go").assistant("working").queued("the same", delivered="withdrawn")
    if is_queued_again:
        session.queued("the same", delivered="user").assistant("done")
    else:
        session.assistant("done").user("the same").assistant("ok")
    messages = read_session(session, tmp_path).messages
    assert [(m.role, m.kind) for m in messages if m.content == "the same"] == [("user", None)]


def test_taking_prompts_back_keeps_notifications_in_the_queue(tmp_path: Path) -> None:
    session = Transcript().user("go").queue("enqueue", "mine").queue("enqueue", NOTIFICATION)
    session.queue("popAll", "mine").queue("dequeue").assistant("ok").user("other").assistant("done")
    assert texts_of(read_session(session, tmp_path).messages, "user") == ["go", "other"]
