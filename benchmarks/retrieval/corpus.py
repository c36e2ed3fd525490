"""Written sessions and the questions that they answer."""

import re
import tomllib
from hashlib import sha256
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct, convert

Half: TypeAlias = Literal["development", "held_out"]
TurnKind: TypeAlias = Literal["prompt", "answer", "command"]

HALVES: tuple[Half, ...] = ("development", "held_out")

_FOLDER = Path(__file__).parent
_KIND_BY_MARK: dict[str, TurnKind] = {">": "prompt", "<": "answer", "$": "command"}
_LANGUAGE_PREFIX = re.compile(r"(de|fr|es|pt|ru|zh|ja|ko)-")


class Turn(Struct, frozen=True):
    """Prompt, answer, or command with its output."""

    kind: TurnKind
    text: str
    output: str = ""


class WrittenSession(Struct, frozen=True):
    """Session of the corpus. A line of ``turns`` starts with ``>``, ``<``, ``$`` or ``|`` (output)."""

    id: str
    workspace: str
    turns: str
    title: str = ""

    @property
    def name(self) -> str:
        """Name in the sample history, from which the session id is derived."""
        return f"{self.workspace}/{self.id}"

    @property
    def language(self) -> str:
        match = _LANGUAGE_PREFIX.match(self.id)
        return match[1] if match else "en"

    @property
    def prose(self) -> list[str]:
        """Text of the prompts and answers."""
        return [turn.text for turn in self.parse_turns() if turn.kind != "command"]

    def parse_turns(self) -> list[Turn]:
        turns: list[Turn] = []
        for line in self.turns.strip().splitlines():
            mark, text = line[0], line[2:]
            if mark == "|":
                last = turns.pop()
                turns.append(Turn(last.kind, last.text, f"{last.output}\n{text}".lstrip("\n")))
            else:
                turns.append(Turn(_KIND_BY_MARK[mark], text))
        return turns


class Question(Struct, frozen=True):
    """Question and keyword query of a person who remembers the session, without its wording."""

    session: str  # id of the written session
    question: str
    keywords: str


def load_sessions() -> list[WrittenSession]:
    """Return all written sessions."""
    sessions: list[WrittenSession] = []
    for path in sorted((_FOLDER / "sessions").glob("*.toml")):
        sessions += convert(_load(path)["session"], list[WrittenSession])
    return sessions


def load_questions(half: Half) -> list[Question]:
    """Return the questions of one half."""
    return convert(_load(_FOLDER / f"{half}.toml")["question"], list[Question])


def half_of(session_id: str) -> Half:
    """Return the half of a session's question: the parity of the first byte of the id's SHA-256."""
    return HALVES[sha256(session_id.encode()).digest()[0] % 2]


def _load(path: Path) -> dict[str, object]:
    return tomllib.loads(path.read_text(encoding="utf-8"))
