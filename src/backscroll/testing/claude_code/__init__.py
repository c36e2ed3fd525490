"""Claude Code's files, as every version wrote them.

`Transcript` writes one session line by line, `GENERATIONS` one example history
per row of the version timeline, `DAMAGE` breaks a file in every way met so far,
and `history` writes as much as a benchmark asks for.
"""

from backscroll.testing.claude_code.calls import Call
from backscroll.testing.claude_code.copies import fork, point_back, repeat, resume, stray
from backscroll.testing.claude_code.era import Era
from backscroll.testing.claude_code.generations import GENERATIONS
from backscroll.testing.claude_code.project import project_key
from backscroll.testing.claude_code.stores import Prompt
from backscroll.testing.claude_code.transcript import Transcript

__all__ = [
    "GENERATIONS",
    "Call",
    "Era",
    "Prompt",
    "Transcript",
    "fork",
    "point_back",
    "project_key",
    "repeat",
    "resume",
    "stray",
]
