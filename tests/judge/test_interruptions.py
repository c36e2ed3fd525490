"""Runs that a signal ends."""

import json
import signal
import time

import pytest

from tests.judge.blocks import Block, text, use
from tests.judge.comparison import assert_agrees
from tests.judge.expectation import result_text
from tests.judge.script import Reply
from tests.judge.stage import Stage


def _expect_stopped(stage: Stage, call: Block) -> bool:
    """Expect that a call was cancelled if the tool wrote a result, else that it is pending."""
    mark = f'"tool_use_id":"{call["id"]}"'
    files = [path.read_text("utf-8") for path in stage.config.glob("projects/**/*.jsonl")]
    for line in "".join(files).splitlines():
        if mark in line and (message := json.loads(line).get("message")):
            result = result_text(message["content"][0])
            is_marked = result != "Exit code 137"  # of a subagent's command: as if it had killed itself
            stage.expect(call, status="cancelled" if is_marked else "failed", decision=None, result=result)
            return True
    return False


@pytest.mark.since("2.1.105")  # 2.0 leaves an empty file
def test_a_prompt_with_an_interrupted_answer_is_kept_if_the_tool_wrote_it(stage: Stage) -> None:
    slow = Reply([text("Slow words " * 200)], chunk_chars=20, chunk_delay_seconds=0.1)
    stage.script.on("PROMPT-SLOW", slow)

    def stop() -> None:
        stage.script.wait_for("PROMPT-SLOW")
        time.sleep(2.0)  # the tool writes its transcript with a delay

    run = stage.ask("PROMPT-SLOW now", stop=stop)
    run.session_id = stage.transcripts()[-1].stem
    stage.expect_as_written(run.exchanges[-1])
    stage.ask("Next prompt heron")
    assert_agrees(stage)


@pytest.mark.since("2.0.76")
def test_a_session_goes_on_after_its_subagent_was_stopped(stage: Stage) -> None:
    start = use(stage.agent_tool, description="Slow", prompt="SUB-SLOW work", subagent_type="general-purpose")
    nap = use("Bash", command="touch napping; sleep 60", description="nap")
    stage.script.on("PROMPT-AGENT", [text("A long one."), start], Reply([text("Waiting.")], delay_seconds=60))
    stage.script.on_agent("SUB-SLOW", [text("It starts."), nap])

    def stop() -> None:
        stage.wait_for_file("napping")
        time.sleep(1.0)

    run = stage.ask("PROMPT-AGENT now", stop=stop)
    run.session_id = next(
        path.stem for path in stage.transcripts() if "PROMPT-AGENT" in path.read_text("utf-8")
    )
    for exchange in run.exchanges:
        if exchange.agent is None:
            stage.expect_as_written(exchange)
    stage.ask("Go on after the stop", "--continue")
    _expect_stopped(stage, nap)
    if stage.script.results.get(start["id"], {}).get("is_error"):  # 2.1.179 stops the call with its subagent
        stage.expect(start, status="cancelled", decision=None)
    assert_agrees(stage)


@pytest.mark.since("2.0.76")
@pytest.mark.parametrize("stop_signal", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_a_session_goes_on_after_its_tool_was_stopped(stage: Stage, stop_signal: signal.Signals) -> None:
    nap = use("Bash", command="touch napping; python3 -c 'import time; time.sleep(60)'", description="nap")
    stage.script.on("PROMPT-SLEEP", [text("Going to sleep."), nap])

    def stop() -> None:
        stage.wait_for_file("napping")
        time.sleep(1.0)  # the tool writes its transcript with a delay

    run = stage.ask("PROMPT-SLEEP now", stop=stop, stop_signal=stop_signal)
    run.session_id = stage.transcripts()[-1].stem
    stage.ask("Go on after the stop", "--continue")
    is_written = _expect_stopped(stage, nap)
    assert is_written or stage.version < "2.1.282"  # older versions may end before they write a result
    assert_agrees(stage)
