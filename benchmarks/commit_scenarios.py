"""Small repositories written with git itself, for what a simulated project does not contain."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from tests.builders.coding_session import CodingSession
from tests.builders.git_repository import GitRepository

from benchmarks.simulated_code import CodeWriter

_START = datetime(2026, 3, 2, 9, tzinfo=UTC)


class Scenario:
    """Repositories and sessions of one kind. ``truth`` is the session of each commit, None for the user."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = Random(seed)
        self.code = CodeWriter(self.random)
        self.truth: dict[tuple[Path, str], str | None] = {}
        self._session_count = 0
        self._seed = seed
        self._hours = 0.0

    @property
    def root(self) -> Path:
        return self.folder / "claude"

    def repository(self, name: str) -> GitRepository:
        """Return a repository with a first commit of the user."""
        checkout = GitRepository(self.folder / "work" / name)
        for path, lines in self.code.first_files():
            checkout.write(path, "\n".join(lines) + "\n")
        self.expect(checkout, checkout.commit("Start", _START - timedelta(days=2)), None)
        return checkout

    def session(self, checkout: GitRepository, *, branch: str = "main") -> CodingSession:
        """Start a session, some hours after the last one."""
        self._session_count += 1
        self._hours += self.random.uniform(0.5, 5)
        id_ = f"{self._seed:08x}-0000-4000-8000-{self._session_count:012}"
        at = _START + timedelta(hours=self._hours)
        session = CodingSession(checkout, id_, at, branch=branch, seed=self._session_count)
        session.prompt(self.code.prompt(self.random.choice(self.code.areas)))
        return session

    def work(self, session: CodingSession, *, checkout: GitRepository | None = None) -> None:
        """Let a session make some edits."""
        folder = (checkout or session.checkout).folder
        for _ in range(self.random.randint(1, 4)):
            files = {
                str(path.relative_to(folder)): path.read_text().splitlines()
                for path in folder.rglob("*.*")
                if ".git" not in path.parts and path.is_file()
            }
            path, before, after = self.code.change(files, self.random.choice(self.code.areas), self.random)
            if before != after:
                session.write(path, "\n".join(after) + "\n", checkout=checkout)
            session.wait(self.random.uniform(0.2, 4))

    def subject(self) -> str:
        return self.code.subject(self.random.choice(self.code.areas))

    def expect(self, checkout: GitRepository, sha: str, session: CodingSession | None) -> None:
        self.truth[checkout.folder, sha] = session.id if session is not None else None

    def save(self, *sessions: CodingSession) -> None:
        self.root.mkdir(exist_ok=True)
        for session in sessions:
            session.save(self.root)


def _cherry_picks(scenario: Scenario) -> None:
    checkout = scenario.repository("shop")
    for number in range(8):
        checkout.run("checkout", "--quiet", "-b", f"topic{number}", "main")
        session = scenario.session(checkout, branch=f"topic{number}")
        scenario.work(session)
        original = session.commit(scenario.subject())
        scenario.expect(checkout, original, session)
        checkout.run("checkout", "--quiet", "main")
        checkout.run("cherry-pick", "--allow-empty", original)
        scenario.expect(checkout, checkout.head(), session)
        scenario.save(session)


def _three_repositories(scenario: Scenario) -> None:
    checkouts = [scenario.repository(name) for name in ("shop", "api", "site")]
    for _ in range(8):
        session = scenario.session(checkouts[0])
        for checkout in checkouts:
            scenario.work(session, checkout=checkout)
            session.wait(scenario.random.uniform(1, 20))
            if checkout.run("status", "--porcelain").strip():
                scenario.expect(checkout, checkout.commit(scenario.subject(), session.now), session)
        scenario.save(session)


def _worktrees(scenario: Scenario) -> None:
    checkout = scenario.repository("shop")
    for number in range(8):
        tree = checkout.worktree(scenario.folder / "work" / f"shop-{number}", f"topic{number}")
        there, here = scenario.session(tree, branch=f"topic{number}"), scenario.session(checkout)
        scenario.work(there)
        scenario.work(here)
        for session in (there, here):
            session.wait(2)
            if session.checkout.run("status", "--porcelain").strip():
                sha = session.checkout.commit(scenario.subject(), session.now)
                scenario.expect(checkout, sha, session)
        scenario.save(there, here)


def _squashed_branches(scenario: Scenario) -> None:
    checkout = scenario.repository("shop")
    for number in range(8):
        checkout.run("checkout", "--quiet", "-b", f"topic{number}", "main")
        session = scenario.session(checkout, branch=f"topic{number}")
        for _ in range(scenario.random.randint(2, 4)):
            scenario.work(session)
            session.commit(scenario.subject())
        checkout.run("checkout", "--quiet", "main")
        checkout.run("merge", "--quiet", "--squash", f"topic{number}")
        later = session.now + timedelta(minutes=scenario.random.randint(1, 110))
        scenario.expect(checkout, checkout.commit(f"{scenario.subject()} (#{number})", later), session)
        checkout.run("branch", "--quiet", "-D", f"topic{number}")
        scenario.save(session)


SCENARIOS: dict[str, Callable[[Scenario], None]] = {
    "cherry-pick": _cherry_picks,
    "one session, three repositories": _three_repositories,
    "worktrees": _worktrees,
    "squashed branches": _squashed_branches,
}
