"""The account of one unit while it is being read."""

from backscroll.model import Origin, Problem, RecordCounts

__all__ = ["UnitReport"]


class UnitReport:
    """Counts records and gathers problems until the stream can tell them."""

    def __init__(self, path: str, record: str = "") -> None:
        self.path = path
        self.record = record  # where the session's own record lies
        self.counts = RecordCounts()
        self.problems: list[Problem] = []  # noted since the last time that they were told

    def add_problem(self, place: str, code: str, reason: str) -> None:
        """Note something that could not be read; counting the record is the caller's."""
        self.problems.append(Problem(Origin(self.path, place), code, reason))

    def take_problems(self) -> list[Problem]:
        """The problems noted since the last time."""
        found, self.problems = self.problems, []
        return found
