"""Messages are kept in pieces, small enough to be unpacked for one of them."""

import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from backscroll.config import NamedRoot
from backscroll.history import History
from backscroll.testing.claude_code import Transcript, tool_calls


def test_what_waited_for_a_late_answer_is_kept_in_pieces_like_any_other(tmp_path: Path) -> None:
    session = "5e551011-0000-4000-8000-0000000000a1"
    talk = (
        Transcript(session, seed=1).user("start the server").assistant(tools=[tool_calls.bash("make serve")])
    )
    server = talk.tool_ids[-1]
    for number in range(700):
        talk.user(f"and number {number}?").assistant(f"Number {number}.")
    talk.run(tool_calls.bash("cat log", "line\n" * 40_000)).result(server, "stopped").write(
        tmp_path / "claude"
    )
    home = tmp_path / "home"
    with History(roots=[NamedRoot("claude-code", tmp_path / "claude")], home=home) as history:
        history.sync()
        shown = history.get_session("1")
    results = [message.tool.result or "" for message in shown.messages if message.tool]
    assert [len(result) for result in results] == [len("stopped"), 200_000]
    with closing(sqlite3.connect(home / "archive.db")) as db:
        places = [place for (place,) in db.execute("select position from message_chunk order by 1")]
    assert max(after - place for place, after in pairwise(places)) <= 200
    assert len(shown.messages) - places[-1] <= 200
