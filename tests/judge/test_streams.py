"""Prompts and control requests on standard input."""

import base64

import pytest

from tests.judge.blocks import text, use
from tests.judge.comparison import assert_agrees
from tests.judge.script import Reply
from tests.judge.stage import Stage
from tests.judge.stream import stream

_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PNG}}


@pytest.mark.since("1.0.0")
def test_prompts_with_images_are_read_once(stage: Stage) -> None:
    stage.write("picture.png", base64.b64decode(_PNG))
    read = use("Read", file_path=str(stage.workspace / "picture.png"))
    stage.script.on("look at the file", [read], [text("I saw the file.")])
    with stream(stage) as running:
        running.prompt([text("What is in this image? walrus"), _IMAGE])
        running.wait_for_results(1)
        running.prompt([text("Second prompt, look at the file")])
        running.wait_for_results(2)
        running.prompt("Third as a string narwhal")
        running.wait_for_results(3)
        running.prompt([_IMAGE])
        running.wait_for_results(4)
    assert_agrees(stage)


@pytest.mark.since("2.0.76")
def test_an_interrupted_answer_keeps_its_prompt(stage: Stage) -> None:
    slow = Reply([text("Slow words " * 200)], chunk_chars=20, chunk_delay_seconds=0.1)
    stage.script.on("STREAM-SLOW", slow)
    with stream(stage) as running:
        running.prompt("STREAM-SLOW begin")
        stage.script.wait_for("STREAM-SLOW")
        running.control("interrupt")
        running.wait_for_results(1)
        running.prompt("After the interruption quail")
        running.wait_for_results(2)
    stage.expect_as_written(stage.runs[-1].exchanges[0])
    assert_agrees(stage)


@pytest.mark.since("2.0.76")
def test_a_tool_stopped_by_the_user_is_cancelled_without_a_decision(stage: Stage) -> None:
    nap = use("Bash", command="touch napping; python3 -c 'import time; time.sleep(60)'", description="nap")
    stage.script.on("STREAM-NAP", [text("Napping."), nap])
    stage.expect(nap, status="cancelled", decision=None)
    with stream(stage) as running:
        running.prompt("STREAM-NAP begin")
        stage.wait_for_file("napping")
        running.control("interrupt")
        running.wait_for_results(1)
        running.prompt("Last words teal")
        running.wait_for_results(2)
    assert_agrees(stage)


@pytest.mark.since("2.0.76")
def test_a_prompt_queued_while_a_tool_runs_is_shown_once(stage: Stage) -> None:
    nap = use("Bash", command="touch napping; while [ ! -e go ]; do sleep 0.1; done", description="nap")
    stage.script.on("STREAM-TOOL", [text("Tool time."), nap], [text("Tool time over.")])
    with stream(stage) as running:
        running.prompt("STREAM-TOOL begin")
        stage.wait_for_file("napping")
        running.prompt("Queued while busy siskin")
        stage.write("go", "")
        running.wait_for_results(1)
    assert_agrees(stage)


@pytest.mark.since("2.1.105")
def test_answers_of_another_model_name_it(stage: Stage) -> None:
    with stream(stage) as running:
        running.prompt("First prompt avocet")
        running.wait_for_results(1)
        running.control("set_model", model="claude-haiku-4-5")
        running.prompt("With another model raven")
        running.wait_for_results(2)
    assert len({exchange.model for exchange in stage.runs[-1].exchanges if not exchange.is_own}) == 2
    assert_agrees(stage)
