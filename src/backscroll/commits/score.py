"""Weights of the evidence and the threshold of a claim.

The weights of all kinds add up to 1. A commit call that printed the hash is the strongest evidence. Content
follows: it finds the session also after a squash, and when the user commits. Files, time, workspace and
branch decide between sessions, and are too weak for a claim of their own.
"""

from math import exp, sqrt

from msgspec import Struct

__all__ = [
    "MIN_CONTENT",
    "MIN_FILES",
    "MIN_SCORE",
    "TRACKING_WEIGHT",
    "Parts",
    "content_strength",
    "time_strength",
]

_COMMIT, _CONTENT, _FILES, _TIME, _WORKSPACE, _BRANCH = 0.44, 0.30, 0.10, 0.07, 0.06, 0.03
TRACKING_WEIGHT = 0.10  # of evidence that the tool collects itself, in addition to the others
MIN_SCORE = 0.2
MIN_CONTENT = 0.25  # of a claim without a commit call
MIN_FILES = 0.5  # of a claim without comparable content
_SOME_CONTENT, _SOME_FILES = 0.1, 0.25  # of a claim with little content
_RECENT = 0.6  # time strength of a session that was active 20 minutes before the commit
_CERTAIN_LINES = 8.0  # this many rare lines are strong evidence, however large the commit is
_CHANCE_LINES = 0.8  # one short or common line may match by chance
_MAX_UNCOMPARABLE_LINES = 1.0
_HALF_LIFE_SECONDS = 30 * 60
_BEFORE_WINDOW = 0.3  # activity that ended before the parent commit


class Parts(Struct):
    """Strength of each kind of evidence, from 0 to 1."""

    commit: float = 0.0
    content: float = 0.0
    files: float = 0.0
    time: float = 0.0
    workspace: float = 0.0
    branch: float = 0.0
    has_unknown_edits: bool = False  # files were changed by commands whose effect is not known
    pending_files: float = 0.0  # share of the files that were edited in a checkout since the parent commit

    def weights(self) -> dict[str, float]:
        """Return the weight of each kind."""
        return {
            "commit": _COMMIT * self.commit,
            "content": _CONTENT * self.content,
            "files": _FILES * self.files,
            "time": _TIME * self.time,
            "workspace": _WORKSPACE * self.workspace,
            "branch": _BRANCH * self.branch,
        }

    @property
    def has_content(self) -> bool:
        """Return whether some lines or files of the commit are those of the session."""
        return self.content >= _SOME_CONTENT or self.files >= _SOME_FILES

    @property
    def has_recent_files(self) -> bool:
        """Return whether the session changed files of the commit just before it."""
        return self.files >= _SOME_FILES and self.time >= _RECENT

    @property
    def score(self) -> float:
        return sum(self.weights().values())

    def is_claim(self, comparable_lines: float) -> bool:
        """Return whether the evidence is enough. ``comparable_lines`` is the weight of all added lines."""
        if self.score < MIN_SCORE:
            return False
        if self.commit or self.content >= MIN_CONTENT:
            return True
        if self.time >= _RECENT and (
            self.pending_files >= MIN_FILES or (self.content >= _SOME_CONTENT and self.files >= _SOME_FILES)
        ):
            return True  # the commit contains the edited files, but the lines were changed again
        # Nothing to compare: a deletion, a rename, a binary file, or a change by a command.
        is_uncomparable = comparable_lines < _MAX_UNCOMPARABLE_LINES or self.has_unknown_edits
        return is_uncomparable and self.files >= MIN_FILES


def content_strength(matched_lines: float, all_lines: float) -> float:
    """Return the strength of matching lines, given by weight: a large share of the commit, or many lines."""
    if not matched_lines:
        return 0.0
    share = sqrt(min(1.0, matched_lines / all_lines)) * (1 - exp(-matched_lines / _CHANCE_LINES))
    return max(share, 1 - exp(-matched_lines / _CERTAIN_LINES))


def time_strength(idle_seconds: float, *, is_in_window: bool) -> float:
    """Return the strength of activity that ended so long before the commit."""
    strength: float = 0.5 ** (idle_seconds / _HALF_LIFE_SECONDS)
    return strength if is_in_window else strength * _BEFORE_WINDOW
