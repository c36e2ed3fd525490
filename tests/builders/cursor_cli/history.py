"""Write a history with many chats, for benchmarks."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

from backscroll.testing.cursor.messages import Message, assistant, thinking, tool, user
from backscroll.testing.cursor.tool_calls import CLI_TOOL_NAMES
from backscroll.testing.cursor_cli.home import START, Home
from backscroll.testing.cursor_cli.transcripts import write_transcript
from tests.builders.lorem import LoremText

_FOLDERS = ("/home/dev/shop", "/home/dev/docs site", "/home/dev/billing", "/srv/infra")


def write_history(root: Path, *, sessions: int = 49, messages: int = 65, seed: int = 0) -> Path:
    """Write chats with ``messages`` messages on average. Every third has a transcript. Return the root."""
    rng = Random(f"cli history/{seed}")
    lorem = LoremText(rng)
    home = Home(root, seed=seed)
    for index in range(sessions):
        chat_messages = list(_random_messages(rng, lorem, max(2, round(messages * rng.uniform(0.1, 1.9)))))
        cwd = rng.choice(_FOLDERS)
        start = START - (sessions - index) * 86_400_000
        chat = home.chat(chat_messages, cwd=cwd, name=lorem.title(), at=start)
        if index % 3 == 0:
            write_transcript(
                root, chat_messages, id=chat.id, cwd=cwd, at=start, mtime=start + len(chat_messages) * 10_000
            )
    home.write_prompts([lorem.title() for _ in range(20)])
    return root


def _random_messages(rng: Random, lorem: LoremText, count: int) -> Iterator[Message]:
    for index in range(count):
        kind = rng.random()
        if index == 0 or kind < 0.08:
            yield user(lorem.text(rng.randrange(20, 400)))
        elif kind < 0.6:
            params = {"path": f"/home/dev/{lorem.word()}.py", "explanation": lorem.title()}
            yield tool(rng.choice(CLI_TOOL_NAMES), params, lorem.text(rng.randrange(20, 4000)))
        elif kind < 0.75:
            yield thinking(lorem.text(rng.randrange(60, 800)))
        else:
            yield assistant(lorem.text(rng.randrange(40, 1500)))
