"""Prompts typed while a turn was running: each is shown once, and none is lost."""

from pathlib import Path

import pytest

from backscroll.testing.claude_code import Transcript, blocks
from tests.sources.claude_code.reading import in_two, only, said

NOTICE = "<task-notification><task-id>a1</task-id><tool-use-id>toolu_9</tool-use-id></task-notification>"


def test_a_prompt_that_begins_like_json_was_typed_by_a_person(tmp_path: Path) -> None:
    words = '{"tz": "Oslo"} is wrong, fix it'
    session = Transcript().user("go")
    session.attachment("queued_command", prompt=words, commandMode="prompt", origin={"kind": "human"})
    assert said(only(session, tmp_path).messages, "user") == ["go", words]


def test_a_queued_prompt_that_begins_like_json_is_shown(tmp_path: Path) -> None:
    words = '{"tz": 1} fix'
    session = Transcript(version="2.1.50").user("go").queue("enqueue", words).queue("remove")
    assert said(only(session, tmp_path).messages, "user") == ["go", words]


def test_images_of_a_queued_prompt_come_along(tmp_path: Path) -> None:
    prompt = [blocks.text("see"), blocks.image(b"x" * 30)]
    delivered = Transcript().user("go")
    delivered.attachment("queued_command", prompt=prompt, commandMode="prompt", origin={"kind": "human"})
    waiting = Transcript().user("go").queue("enqueue", prompt)
    for session in (delivered, waiting):
        message = only(session, tmp_path).messages[-1]
        assert (message.role, message.content) == ("user", "see")
        assert [(a.kind, a.size) for a in message.attachments] == [("image", 30)]


def test_a_queued_command_that_was_run_is_not_shown_twice(tmp_path: Path) -> None:
    session = Transcript().user("go").queue("enqueue", "/compact keep! it").queue("dequeue")
    session.command("compact", "keep! it", stdout="done")
    messages = only(session, tmp_path).messages
    assert said(messages, "user") == ["go"]
    assert "/compact keep! it" in said(messages, "system")


def test_a_queued_shell_command_that_was_run_is_not_shown_twice(tmp_path: Path) -> None:
    session = Transcript().user("go").queue("enqueue", "!ls -l").queue("dequeue").bash_mode("ls -l", "a")
    assert said(only(session, tmp_path).messages, "user") == ["go"]


def test_a_notification_taken_out_of_the_queue_leaves_a_persons_prompt_in_it(tmp_path: Path) -> None:
    session = Transcript(version="2.1.50").user("go").queue("enqueue", "my words").queue("enqueue", NOTICE)
    session.queue("remove", NOTICE).queue("dequeue").user("my words").assistant("ok")
    messages = only(session, tmp_path).messages
    assert said(messages, "user", active=False) == ["go", "my words"]


def test_a_prompt_told_too_early_gives_way_to_its_delivery(tmp_path: Path) -> None:
    session = Transcript(version="2.1.50").user("go").queue("enqueue", "my words").queue("remove")
    session.user("my words").assistant("ok")
    messages = only(session, tmp_path).messages
    assert said(messages, "user", active=False) == ["go", "my words"]
    assert [message.kind for message in messages if message.role == "user"] == [None, None]


def test_a_text_queued_a_hundred_times_is_shown_once(tmp_path: Path) -> None:
    session = Transcript(version="2.1.50").user("go")
    for _ in range(100):
        session.queue("enqueue", "again").queue("remove")
    assert said(only(session, tmp_path).messages, "user") == ["go", "again"]


@pytest.mark.parametrize("joint", ["\n", "\n\n", " \n"])
@pytest.mark.parametrize("taken_out", ["dequeue", "remove"])
def test_prompts_that_are_delivered_joined_are_not_shown_as_queued_too(
    tmp_path: Path, joint: str, taken_out: str
) -> None:
    session = Transcript(version="2.1.50").user("go")
    session.queue("enqueue", "first\nof two lines").queue("enqueue", "second").queue("enqueue", "third")
    session.queue(taken_out).queue(taken_out).queue(taken_out)
    joined = joint.join(["first\nof two lines", "second", "third"])
    session.user(joined).assistant("ok")
    assert said(only(session, tmp_path).messages, "user") == ["go", joined]


def test_prompts_are_delivered_joined_only_when_every_part_is_one_of_them(tmp_path: Path) -> None:
    for joined in ("first\nsecond and more", "before\nfirst\nsecond", "first second", "first\nsec"):
        session = Transcript(version="2.1.50").user("go")
        session.queue("enqueue", "first").queue("enqueue", "second").queue("dequeue").queue("dequeue")
        session.user(joined).assistant("ok")
        told = said(only(session, tmp_path).messages, "user")
        assert sorted(told) == sorted(["go", joined, "first", "second"])


def test_of_prompts_that_begin_alike_those_are_delivered_that_make_up_the_whole(tmp_path: Path) -> None:
    session = Transcript(version="2.1.50").user("go")
    for words in ("a", "a\nb", "a\nb\nc", "d"):
        session.queue("enqueue", words)
    session.user("a\nb\nd").assistant("ok")
    assert sorted(said(only(session, tmp_path).messages, "user")) == ["a", "a\nb\nc", "a\nb\nd", "go"]


def test_prompts_that_were_read_while_they_waited_are_shown_once_when_they_arrive_joined(
    tmp_path: Path,
) -> None:
    session = Transcript(version="2.1.50").user("go").queue("enqueue", "first").queue("enqueue", "second")
    path = session.write(tmp_path)
    waiting = path.stat().st_size
    path = session.user("first\nsecond").assistant("ok").write(tmp_path)
    (reading,) = in_two(path, waiting).sessions
    assert said(reading.messages, "user") == ["go", "first\nsecond"]
