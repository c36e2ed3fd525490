"""LoCoMo: questions about long conversations, asked with ``search``.

``python -m benchmarks.locomo PATH`` reads ``locomo10.json`` of snap-research/locomo. The file is not in this
repository. Each conversation becomes a history of its own, each of its sessions a Claude Code session: the
turns of the first speaker are prompts, those of the second are answers. A hit is a session with a turn that
the dataset names as evidence. Questions without evidence are left out.
"""

import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing.claude_code import Transcript
from benchmarks.retrieval_quality import Measurement, RankedQuery, first_rank, print_table

_SESSION_KEY = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D:?(\d+):\d+")  # a few entries hold several ids, or a stray colon
_TIME_FORMAT = "%I:%M %p on %d %B, %Y"  # "1:56 pm on 8 May, 2023"


def answer_ranks(conversations: list[dict[str, Any]]) -> Iterator[RankedQuery]:
    """Yield each question that has evidence, with the rank of the first session that contains some."""
    for conversation in conversations:
        with tempfile.TemporaryDirectory(prefix="backscroll-locomo-") as folder:
            root = Path(folder) / "claude"
            id_by_number = write_conversation(root, conversation["conversation"])
            with History(roots=[NamedRoot("claude-code", root)], home=Path(folder) / "archive") as history:
                history.sync()
                for question in conversation["qa"]:
                    numbers = evidence_sessions(question.get("evidence", []))
                    answer_ids = {id_by_number[number] for number in numbers if number in id_by_number}
                    if answer_ids:
                        text = str(question["question"])
                        matches = history.search_sessions(text).data
                        yield RankedQuery(
                            text, first_rank([match.session_id for match in matches], answer_ids)
                        )


def write_conversation(root: Path, conversation: Mapping[str, Any]) -> dict[int, str]:
    """Write the sessions of one conversation. Return their ids by number."""
    id_by_number: dict[int, str] = {}
    for key, turns in conversation.items():
        match = _SESSION_KEY.fullmatch(key)
        if match is None or not turns:
            continue
        number = int(match[1])
        id_by_number[number] = str(UUID(int=number, version=4))
        start = _parse_time(conversation.get(f"{key}_date_time", ""))
        transcript = Transcript(id_by_number[number], cwd="/home/zoe/locomo", start=start)
        for turn in turns:
            text = f"{turn['speaker']}: {turn['text']}"
            if turn["speaker"] == conversation["speaker_a"]:
                transcript.user(text)
            else:
                transcript.assistant(text)
        transcript.write(root)
    return id_by_number


def evidence_sessions(evidence: list[str]) -> set[int]:
    """Return the session numbers in evidence such as ``["D1:3", "D8:6; D9:17"]``."""
    return {int(number) for entry in evidence for number in _EVIDENCE.findall(entry)}


def _parse_time(text: str) -> datetime:
    try:
        return datetime.strptime(text, _TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return datetime(2023, 1, 1, tzinfo=UTC)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: python -m benchmarks.locomo PATH_OF_LOCOMO10_JSON")
    ranks = tuple(answer_ranks(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
    print_table([Measurement("locomo", "questions", "search", ranks)])
