"""Claude Code's files, as every version wrote them.

`Transcript` writes one session line by line, `GENERATIONS` one example history
per row of the version timeline, `DAMAGE` breaks a file in every way met so far,
and `history` writes as much as a benchmark asks for. Tool calls with their
answers are in `calls`, content blocks in `blocks`, the files beside the
transcripts in `stores`.
"""

from backscroll.testing.claude_code.bulk.history import Written, history
from backscroll.testing.claude_code.damage import DAMAGE
from backscroll.testing.claude_code.forks import fork, point_back, repeat, resume, stray
from backscroll.testing.claude_code.generations import GENERATIONS
from backscroll.testing.claude_code.odd_records import ODDITIES
from backscroll.testing.claude_code.project_key import project_key
from backscroll.testing.claude_code.side_files import Prompt
from backscroll.testing.claude_code.tool_calls import Call
from backscroll.testing.claude_code.transcript import Transcript
from backscroll.testing.claude_code.versions import Era

__all__ = [
    "DAMAGE",
    "GENERATIONS",
    "ODDITIES",
    "Call",
    "Era",
    "Prompt",
    "Transcript",
    "Written",
    "fork",
    "history",
    "point_back",
    "project_key",
    "repeat",
    "resume",
    "stray",
]
