"""Record counts and problems of one unit while it is read."""

from backscroll.model import Origin, Problem, RecordCounts

__all__ = ["UnitReport"]


class UnitReport:
    """Counts records, and collects problems until the stream can emit them."""

    def __init__(self, path: str, record: str = "") -> None:
        self.path = path
        self.record = record  # location of the session's own record
        self.counts = RecordCounts()
        self.problems: list[Problem] = []  # since the last `take_problems`

    def add_problem(self, location: str, code: str, reason: str) -> None:
        """Add a problem. The caller counts the record."""
        self.problems.append(Problem(Origin(self.path, location), code, reason))

    def take_problems(self) -> list[Problem]:
        """Return the problems since the last call."""
        found, self.problems = self.problems, []
        return found
