"""Runs that a signal ends."""

import signal
import time

import pytest

from tests.judge.blocks import text, use
from tests.judge.comparison import assert_agrees
from tests.judge.stage import Stage


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
    is_lost = stage.version < "2.1.282"  # these versions write no result
    stage.expect(nap, status="pending" if is_lost else "cancelled", decision=None)
    stage.ask("Go on after the stop", "--continue")
    assert_agrees(stage)
