"""Typed text and context in user messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.sources.cursor_graph.message_parts import is_injected, parse_prompt, workspace_folders


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("<user_info>\nOS\n</user_info>\n<user_query>\nfix it\n</user_query>", "fix it"),
        ("<user_query>one</user_query>\n<user_query>two</user_query>", "one\n\ntwo"),
        ("<user_query>\ncut off in the mid", "cut off in the mid"),
        ("<user_query>\n\n</user_query>", ""),
        ("<user_query>\nwhat closes </user_query> here?\n</user_query>", "what closes </user_query> here?"),
        ("<user_query>\nwhat opens <user_query> here?\n</user_query>", "what opens <user_query> here?"),
        ("plain words", "plain words"),
        ("<system_reminder>x</system_reminder>fix it", "fix it"),
        ("<rules>\nbe kind\n</rules>", ""),
        ("compare a < b and b > c", "compare a < b and b > c"),
        ("<div>markup is typed too</div>", "<div>markup is typed too</div>"),
        ("<user_info>never closed", "<user_info>never closed"),
    ],
)
def test_only_typed_text_is_returned(raw: str, text: str) -> None:
    assert parse_prompt(raw).text == text


def test_images_named_beside_the_prompt_are_attachments() -> None:
    raw = "<image_files>\n1. /home/dev/chart one.png\n</image_files>\n<user_query>look</user_query>"
    (image,) = parse_prompt(raw).attachments
    assert (image.path, image.name) == ("/home/dev/chart one.png", "chart one.png")
    assert [each.kind for each in parse_prompt("[Image]\n[Image]").attachments] == ["image", "image"]
    prompt = parse_prompt("[Image]\n<user_query>\nlook\n</user_query>")
    assert (prompt.text, [each.kind for each in prompt.attachments]) == ("look", ["image"])


@given(st.text())
def test_any_text_in_tags_is_returned(text: str) -> None:
    if "user_query>" not in text:
        assert parse_prompt(f"<user_query>{text}</user_query>").text == text.strip()


@given(st.text())
def test_any_text_can_be_parsed(raw: str) -> None:
    parse_prompt(raw)
    is_injected(raw)


def test_prompts_written_by_the_tool_are_detected() -> None:
    assert is_injected("The subagent explore has completed.")
    assert is_injected("Background task 3 finished with exit code 0")
    assert not is_injected("Continue where you left off")
    assert not is_injected("Why has the background of this task changed?")


def test_the_workspace_path_is_read_from_the_context() -> None:
    assert workspace_folders("<user_info>\nWorkspace Path: /home/dev/my shop\n</user_info>") == [
        "/home/dev/my shop"
    ]
