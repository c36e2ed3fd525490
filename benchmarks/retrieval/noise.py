"""Sessions that answer no question but contain its words.

Real histories have huge system messages, large tool output and long sessions that mention many topics. The
text here is random, from the words of the written sessions and a list of general English words. The question
files are not an input.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from uuid import UUID

from backscroll.testing.claude_code import Transcript, tool_calls
from benchmarks.retrieval.corpus import WrittenSession

_GENERAL_WORDS = Path(__file__).with_name("general_words.txt")
_START = datetime(2026, 2, 2, 8, tzinfo=UTC)
_MIN_COMMON_SESSIONS = 4  # written sessions that contain a common word
_TOPIC_SHARE = 0.05  # of the words of a sentence
_GENERAL_SHARE = 0.4

# One session each: characters of the system message and the share of the vocabulary that it contains.
_HUGE_MESSAGES = (
    (300_000, 0.2),
    (420_000, 0.3),
    (540_000, 0.4),
    (660_000, 0.5),
    (780_000, 0.6),
    (900_000, 0.75),
)
_TOOL_OUTPUT_SESSIONS = 60
_TOOL_OUTPUT_CHARS = (8_000, 250_000)
_TOOL_VOCABULARY_SHARE = (0.03, 0.3)
_LONG_SESSIONS = 12
_LONG_SESSION_TURNS = (150, 400)
_SHORT_SESSIONS = 600
_SHORT_SESSION_TURNS = (1, 60)  # log-uniform
_TOPIC_WORDS = 10  # of a short session
_LONG_TOPIC_WORDS = 100
_RELATED_SHARE = 0.5  # of the other sessions: about the topic of one written session


def write_noise(root: Path, home: str, sessions: Sequence[WrittenSession], *, scale: float = 1) -> int:
    """Write the noise as Claude Code sessions. Return their number, which ``scale`` multiplies."""
    writer = _NoiseWriter(home, sessions)
    count = 0
    for transcript in writer.transcripts(scale):
        transcript.write(root)
        count += 1
    return count


class _NoiseWriter:
    def __init__(self, home: str, sessions: Sequence[WrittenSession]) -> None:
        self.rng = Random("retrieval noise")
        self.home = home
        self.workspaces = sorted({session.workspace for session in sessions})
        english = [session for session in sessions if session.language == "en"]
        general_words = _GENERAL_WORDS.read_text(encoding="utf-8").split()
        self.prose = _ProseGenerator(self.rng, english, general_words)
        words = {_plain(word) for session in english for text in session.prose for word in text.split()}
        self.vocabulary = sorted(words.union(general_words) - {""})

    def transcripts(self, scale: float) -> Iterator[Transcript]:
        for size, share in _HUGE_MESSAGES[: max(round(len(_HUGE_MESSAGES) * scale), 1)]:
            yield self._huge_message(size, share)
        for _ in range(round(_TOOL_OUTPUT_SESSIONS * scale)):
            yield self._tool_output()
        for _ in range(round(_LONG_SESSIONS * scale)):
            yield self._conversation(self.rng.randint(*_LONG_SESSION_TURNS), topic_words=_LONG_TOPIC_WORDS)
        for _ in range(round(_SHORT_SESSIONS * scale)):
            turns = int(self._log_uniform(*_SHORT_SESSION_TURNS))
            yield self._conversation(turns, topic_words=_TOPIC_WORDS)

    def _huge_message(self, size: int, vocabulary_share: float) -> Transcript:
        """Return a session in which a command expands to a listing of skills or documentation."""
        transcript = self._new_transcript()
        body = self._listing(size, vocabulary_share)
        transcript.prompt_command(self.rng.choice(("skills", "context", "plugin:docs")), body=body)
        transcript.assistant(self.prose.paragraph(2))
        return self._add_turns(transcript, self.rng.randint(1, 4))

    def _tool_output(self) -> Transcript:
        """Return a session that reads large files and prints long output."""
        transcript = self._add_turns(self._new_transcript(), 1)
        for number in range(self.rng.randint(1, 4)):
            size = int(self._log_uniform(*_TOOL_OUTPUT_CHARS))
            text = self._listing(size, self.rng.uniform(*_TOOL_VOCABULARY_SHARE))
            path = f"{transcript.cwd}/docs/notes-{number}.md"
            call = tool_calls.read(path, text) if number % 2 else tool_calls.bash(f"cat {path}", text)
            transcript.run(call, text=self.prose.paragraph(1))
            transcript.assistant(self.prose.paragraph(2))
        return self._add_turns(transcript, self.rng.randint(1, 3))

    def _conversation(self, turns: int, *, topic_words: int) -> Transcript:
        return self._add_turns(self._new_transcript(topic_words), turns)

    def _add_turns(self, transcript: Transcript, count: int) -> Transcript:
        for _ in range(count):
            transcript.wait(self.rng.randint(20, 200))
            transcript.user(self.prose.paragraph(self.rng.randint(1, 3)))
            if self.rng.random() < 0.4:
                transcript.run(tool_calls.bash(f"git log -{count}", self.prose.paragraph(4)))
            transcript.assistant(self.prose.paragraph(self.rng.randint(1, 5)))
        return transcript

    def _listing(self, size: int, vocabulary_share: float) -> str:
        """Return a Markdown list of random sentences from a share of the vocabulary."""
        words = self.rng.sample(self.vocabulary, int(len(self.vocabulary) * vocabulary_share))
        lines: list[str] = []
        length = 0
        while length < size:
            chosen = self.rng.choices(words, k=self.rng.randint(9, 22))
            line = f"- {chosen[0]}: {' '.join(chosen[1:])}."
            lines.append(line)
            length += len(line) + 1
        return "\n".join(lines)

    def _new_transcript(self, topic_words: int = _TOPIC_WORDS) -> Transcript:
        is_related = topic_words == _TOPIC_WORDS and self.rng.random() < _RELATED_SHARE
        self.prose.choose_topic(topic_words, is_related=is_related)
        start = _START + timedelta(minutes=self.rng.randrange(270 * 24 * 60))
        workspace = self.rng.choice(self.workspaces)
        id_ = str(UUID(int=self.rng.getrandbits(128), version=4))
        return Transcript(id_, version="2.1.224", cwd=f"{self.home}/projects/{workspace}", start=start)

    def _log_uniform(self, low: float, high: float) -> float:
        return float(low * (high / low) ** self.rng.random())


class _ProseGenerator:
    """Random sentences: word pairs of the written sessions, general words and the topic of one session.

    Words of few written sessions are rare. They occur only as part of a topic, because a real session
    does not mention everything.
    """

    def __init__(self, rng: Random, sessions: Sequence[WrittenSession], general_words: Sequence[str]) -> None:
        self._rng = rng
        self._general_words = general_words
        words_by_session = [
            [_plain(word) for text in each.prose for word in text.split()] for each in sessions
        ]
        session_counts = Counter(word for words in words_by_session for word in set(words))
        common = {word for word, count in session_counts.items() if count >= _MIN_COMMON_SESSIONS}
        self.rare_words = sorted(session_counts.keys() - common - {""})
        rare = set(self.rare_words)
        rare_words = [sorted(rare.intersection(words)) for words in words_by_session]
        self._rare_words_by_session = [words for words in rare_words if words]
        self._common_words = [word for words in words_by_session for word in words if word in common]
        self._next_words: dict[str, list[str]] = defaultdict(list)
        for word, following in zip(self._common_words, self._common_words[1:], strict=False):
            self._next_words[word].append(following)
        self._topic: Sequence[str] = ()

    def choose_topic(self, word_count: int, *, is_related: bool) -> None:
        """Choose the rare words of the next sentences, from one written session or from all."""
        related_words = self._rng.choice(self._rare_words_by_session)
        candidates = related_words if is_related else self.rare_words
        self._topic = self._rng.sample(candidates, min(word_count, len(candidates)))

    def paragraph(self, sentence_count: int) -> str:
        return " ".join(self._sentence() for _ in range(sentence_count))

    def _sentence(self) -> str:
        words = [self._rng.choice(self._common_words)]
        for _ in range(self._rng.randint(6, 22)):
            words.append(self._next_word(words[-1]))
        return f"{' '.join(words).capitalize()}."

    def _next_word(self, word: str) -> str:
        chance = self._rng.random()
        if chance < _TOPIC_SHARE:
            return self._rng.choice(self._topic)
        if chance < _TOPIC_SHARE + _GENERAL_SHARE:
            return self._rng.choice(self._general_words)
        return self._rng.choice(self._next_words.get(word) or self._common_words)


def _plain(word: str) -> str:
    return word.strip(".,:;!?\"'()`“”").lower()
