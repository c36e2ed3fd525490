"""A simulated project: sessions, a user, and the commits that they make, with the truth of each commit.

Sessions run in time order and share the files of one repository. They edit with tools, here-documents and
scripts, and commit themselves or leave it to the user, who also edits, formats, and commits alone. The
repository is written with ``git fast-import``, so that 10,000 commits take seconds.
"""

import heapq
import subprocess
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from backscroll.testing.claude_code import Transcript, tool_calls
from benchmarks.simulated_code import CodeWriter, Line, format_lines

_START = datetime(2026, 1, 5, 8, tzinfo=UTC)
_WORK_HOURS = 11
_Steps = Generator[datetime, datetime, None]  # yields the time of each next step, receives it


@dataclass(frozen=True)
class Options:
    """Shares of what happens in a project."""

    session_count: int = 120
    sessions_per_day: float = 6.0
    seed: int = 0
    assistant_commits: float = 0.45  # sessions that commit themselves
    quiet_commits: float = 0.4  # of these: git prints no hash
    rebased: float = 0.0  # commits whose hash changed later
    squashed: float = 0.0  # commits that were joined with the next one of the session
    late_commits: float = 0.3  # sessions of which the user commits everything at the end
    user_tweaks: float = 0.2  # tasks after which the user changes lines
    formatted: float = 0.15  # tasks after which a formatter runs
    user_commits: float = 0.25  # commits of the user alone, for each session
    scripts: float = 0.2  # edits by here-documents and scripts
    other_folder: float = 0.25  # sessions in a subfolder, a parent folder or a worktree
    clones: float = 0.0  # sessions in a clone of their own, whose commits are rebased
    opaque: float = 0.08  # edits by commands that name neither file nor text
    moved: float = 0.04  # edits that rename a file
    parallel: float = 0.0  # sessions that start together with another one, in the same area
    long_sessions: float = 0.05  # sessions with many tasks
    large_file: float = 0.0  # changes of one file of 2,000 lines
    missing: float = 0.0  # sessions whose transcript was deleted
    subagents: float = 0.0  # edits that a subagent makes
    lost_subagents: float = 0.0  # of these: the transcript of the subagent was deleted
    boilerplate: float = 0.0  # functions of lines that many files repeat
    modelled: float = 0.0  # new files of sessions that repeat most of an older file
    typed_files: float = 0.0  # commits of the user that add a long file of frequent lines
    relocated: float = 0.0  # commits of the user that move code to another file
    first_number: int = 0  # of the sessions


@dataclass
class SimulatedCommit:
    """A commit and the sessions whose work it contains."""

    mark: int
    at: datetime
    committed_at: datetime
    message: str
    files: dict[str, str | None]
    session_ids: frozenset[str]  # any of them is right; one, if a session committed
    active_ids: frozenset[str] = frozenset()  # of these, active in the two hours before
    printed: list[tuple["_Session", str]] = field(default_factory=list)
    sha: str = ""
    marks: set[int] = field(default_factory=set)  # of the commits that it contains


class SimulatedProject:
    """Files, commits and sessions. `write` creates the repository and the transcripts."""

    def __init__(self, options: Options, folder: Path) -> None:
        self.options = options
        self.folder = folder
        self.random = Random(options.seed)
        self.code = CodeWriter(self.random)
        self.files: dict[str, list[str]] = {}  # of `Line`
        self.committed: dict[str, list[str]] = {}
        self.changed_by: dict[str, set[str]] = {}  # uncommitted files, with the sessions that changed them
        self.commits: list[SimulatedCommit] = []
        self.sessions: list[_Session] = []
        self.last_active: dict[str, list[datetime]] = {}

    def put(self, path: str, lines: list[str], writer: str | None, *, is_recorded: bool = True) -> None:
        """Change a file. New lines have the given writer: a session, or None for the user."""
        self.files[path] = [
            line if isinstance(line, Line) else Line.written(line, writer, is_recorded=is_recorded)
            for line in lines
        ]

    def commit(
        self, at: datetime, message: str, paths: Iterable[str], *, only: str | None = None
    ) -> SimulatedCommit | None:
        """Commit files that have changed. None if there are none."""
        files: dict[str, str | None] = {}
        sessions: set[str] = set()
        for path in paths:
            lines = self.files.get(path)
            if lines == self.committed.get(path):
                continue
            files[path] = None if lines is None else "\n".join(lines) + "\n"
            sessions |= self.changed_by.pop(path, set())
            before = {*map(id, self.committed.get(path, []))}
            if lines is None:
                self.committed.pop(path, None)
            else:
                self.committed[path] = list(lines)
                for line in lines:
                    if id(line) not in before:
                        assert isinstance(line, Line)
                        line.commits.add(len(self.commits) + 1)
        if not files:
            return None
        if only is not None:
            sessions = {only}
        active = {
            session
            for session in sessions
            if any(at - timedelta(hours=2) <= time <= at for time in self.last_active[session])
        }
        found = SimulatedCommit(
            len(self.commits) + 1, at, at, message, files, frozenset(sessions), frozenset(active)
        )
        found.marks.add(found.mark)
        self.commits.append(found)
        return found

    def write(self, root: Path, folder: Path | None = None) -> None:
        """Write the repository, then the transcripts with the hashes that git printed.

        With a ``folder``, the repository is written there, and is to be moved later.
        """
        self._squash()
        self._import(folder or self.folder)
        for session in self.sessions:
            if not session.is_missing:
                session.save(root)

    def _squash(self) -> None:
        """Join some commits of a session with its next one, if no other commit is between them."""
        kept: list[SimulatedCommit] = []
        for commit in self.commits:
            last = kept[-1] if kept else None
            if (
                last is not None
                and commit.session_ids
                and commit.session_ids == last.session_ids
                and self.random.random() < self.options.squashed
            ):
                last.files |= commit.files
                last.at = last.committed_at = commit.at + timedelta(minutes=self.random.randint(1, 600))
                last.message = f"{last.message}\n\n* {last.message.splitlines()[0]}\n\n* {commit.message}"
                last.active_ids |= commit.active_ids
                commit.sha = "squashed"
                last.marks |= commit.marks
                last.printed += commit.printed
                continue
            kept.append(commit)
        self.commits = kept

    def _import(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", "--initial-branch=main", str(folder)], check=True)
        stream: list[bytes] = []
        for commit in self.commits:
            if self.random.random() < self.options.rebased:
                commit.committed_at += timedelta(hours=self.random.randint(1, 72))
            message = commit.message.encode()
            stream.append(
                b"commit refs/heads/main\nmark :%d\n" % commit.mark
                + b"author Robin Vale <robin@example.invalid> %d +0000\n" % commit.at.timestamp()
                + b"committer Robin Vale <robin@example.invalid> %d +0000\n" % commit.committed_at.timestamp()
                + b"data %d\n%s\n" % (len(message), message)
            )
            for path, text in commit.files.items():
                if text is None:
                    stream.append(f"D {path}\n".encode())
                else:
                    data = text.encode()
                    stream.append(f"M 100644 inline {path}\ndata {len(data)}\n".encode() + data + b"\n")
        marks = folder / ".git" / "marks"
        subprocess.run(
            ["git", "fast-import", "--quiet", f"--export-marks={marks}"],
            cwd=folder,
            input=b"".join(stream),
            check=True,
        )
        subprocess.run(["git", "reset", "-q", "--hard"], cwd=folder, check=True)
        shas = dict(line.split() for line in marks.read_text().splitlines())
        for commit in self.commits:
            commit.sha = shas[f":{commit.mark}"]
            is_rebased = commit.committed_at != commit.at
            for session, place in commit.printed:
                session.printed[place] = (
                    f"{self.random.getrandbits(28):07x}" if is_rebased else commit.sha[:7]
                )


class _Session:
    """A session that works on some tasks. Records calls; the transcript is written at the end."""

    def __init__(self, project: SimulatedProject, number: int) -> None:
        self.project = project
        self.random = Random(f"{project.options.seed} {number}")
        self.id = f"{self.random.getrandbits(32):08x}-0000-4000-8000-{number:012}"
        self.ref = f"claude-code:{self.id}"
        self.folder = self._choose_folder()
        self.events: list[tuple[datetime, str, object]] = []
        self.printed: dict[str, str] = {}
        self.own_paths: dict[str, None] = {}
        self.area = self.random.choice(project.code.areas)
        missing = project.options.missing
        self.is_missing = bool(missing) and self.random.random() < missing

    def _choose_folder(self) -> Path:
        folder = self.project.folder
        if self.random.random() < self.project.options.clones:
            return folder.parent.parent / "clones" / f"helper{self.id[-4:]}" / folder.name
        if self.random.random() >= self.project.options.other_folder:
            return folder
        return self.random.choice([folder / "src", folder.parent, folder.with_name(f"{folder.name}-tree")])

    @property
    def checkout(self) -> Path:
        is_other = self.folder.name == f"{self.project.folder.name}-tree" or "clones" in self.folder.parts
        return self.folder if is_other else self.project.folder

    def run(self, now: datetime) -> _Steps:
        """Work. Yields the time of each next step."""
        options, random = self.project.options, self.random
        is_committing = random.random() < options.assistant_commits
        is_late = not is_committing and random.random() < options.late_commits
        task_count = 25 if random.random() < options.long_sessions else random.choice([1, 1, 2, 2, 3, 4, 6])
        for number in range(task_count):
            self._add(now, "prompt", self.project.code.prompt(self.area))
            for _ in range(random.choice([1, 2, 2, 3, 4, 7])):
                now = yield now + timedelta(seconds=random.randint(10, 150))
                self._edit(now)
            if random.random() < options.user_tweaks:
                now = yield now + timedelta(minutes=random.randint(1, 5))
                self.project_tweak()
            if random.random() < options.formatted:
                for path in self.own_paths.keys() & self.project.files.keys():
                    self.project.files[path] = [*_formatted(self.project.files[path])]
            subject = self.project.code.subject(self.area)
            if is_committing:
                now = yield now + timedelta(seconds=random.randint(5, 60))
                now = self._commit(now, subject)
            elif not is_late and random.random() < 0.85:
                now = yield now + timedelta(minutes=random.choice([1, 2, 4, 9, 20, 50]))
                self.project.commit(now, subject, list(self.own_paths))
            if number and random.random() < 0.2:  # continued later
                now = yield now + timedelta(minutes=random.randint(15, 200))
        if is_late:
            now = yield now + timedelta(minutes=random.choice([2, 10, 30, 70, 100, 240]))
            paths = list(self.project.files) if random.random() < 0.2 else list(self.own_paths)
            self.project.commit(now, self.project.code.subject(self.area), paths)

    def _add(self, at: datetime, kind: str, value: object) -> None:
        self.events.append((at, kind, value))
        self.project.last_active.setdefault(self.id, []).append(at)

    def project_tweak(self) -> None:
        """Change a line as the user does, in a file of the session."""
        paths = [path for path in self.own_paths if path in self.project.files]
        if paths:
            path = self.random.choice(paths)
            self.project.put(path, self.project.code.tweak(self.project.files[path]), None)

    def _edit(self, now: datetime) -> None:
        project = self.project
        paths = [path for path in self.own_paths if path in project.files]
        if paths and self.random.random() < project.options.moved:
            self._move(now, self.random.choice(paths))
            return
        path, before, after = project.code.change(project.files, self.area, self.random)
        project.changed_by.setdefault(path, set()).add(self.id)
        self.own_paths[path] = None
        file = str(self.checkout / path)
        old, new = "\n".join(before) + "\n" if before else "", "\n".join(after) + "\n"
        is_recorded = True
        kind = "call"
        if self.random.random() < project.options.opaque:
            command = self.random.choice(["make generate", "npx codemod rename-rate", "python tools/bump.py"])
            call = tool_calls.bash(command, "done")
            is_recorded = False
        elif self.random.random() < project.options.scripts:
            call = self._script(path, before, after)
            is_recorded = not str(call.input["command"]).startswith("sed")
        elif not before:
            call = tool_calls.write(file, new)
        elif len(after) < 400 and self.random.random() < 0.1:
            call = tool_calls.write(file, new, original=old)
        else:
            call = tool_calls.edit(file, *_smallest_change(before, after), original=old)
        if project.options.subagents and self.random.random() < project.options.subagents:
            is_lost = self.random.random() < project.options.lost_subagents
            kind = "lost subagent" if is_lost else "subagent"
            is_recorded = is_recorded and not is_lost
        self._add(now, kind, call)
        project.put(path, after, self.id, is_recorded=is_recorded)

    def _move(self, now: datetime, path: str) -> None:
        stem, dot, suffix = path.rpartition(".")
        target = f"{stem}_{self.random.randint(2, 99)}{dot}{suffix}"
        self.project.files[target] = self.project.files.pop(path)
        sessions = self.project.changed_by.pop(path, set())
        for each in (path, target):
            self.project.changed_by[each] = sessions | {self.id}
            self.own_paths[each] = None
        self._add(now, "call", tool_calls.bash(f"git mv {path} {target}"))

    def _script(self, path: str, before: list[str], after: list[str]) -> tool_calls.Call:
        """Return a shell command that makes the change."""
        if not before:
            text = "\n".join(after)
            return tool_calls.bash(f"cat > {path} <<'EOF'\n{text}\nEOF")
        old, new = _smallest_change(before, after)
        if self.random.random() < 0.3 and old.count("\n") == 1:
            return tool_calls.bash(f"sed -i 's/{old[:20].strip()}/{new[:20].strip()}/' {path}")
        script = (
            f"p = '{path}'\ns = open(p).read()\n"
            f"s = s.replace('''{old}''', '''{new}''')\nopen(p, 'w').write(s)"
        )
        return tool_calls.bash(f"python3 - <<'EOF'\n{script}\nEOF\npython -m pytest -q")

    def _commit(self, now: datetime, subject: str) -> datetime:
        at = now + timedelta(seconds=self.random.randint(1, 30))
        commit = self.project.commit(at, subject, list(self.own_paths), only=self.id)
        if commit is None:
            return now
        style = self.random.choice(["-m", "heredoc", "-F", "am"])
        quiet = "-q " if self.random.random() < self.project.options.quiet_commits else ""
        quoted = subject.replace('"', '\\"')
        command = {
            "-m": f'git add -A && git commit {quiet}-m "{quoted}"',
            "heredoc": f"git commit {quiet}-m \"$(cat <<'EOF'\n{subject}\n\nReason.\nEOF\n)\" && git push",
            "-F": f"git commit {quiet}-aF /tmp/message.txt",
            "am": f'cd {self.checkout} && git commit {quiet}-am "{quoted}" && git status --short',
        }[style]
        place = f"{len(self.events)}"
        commit.printed += [] if quiet else [(self, place)]
        self._add(now, "commit", (command, place, subject, at))
        return at

    def save(self, root: Path) -> None:
        """Write the transcript."""
        if not self.events:
            return
        number = int(self.id[-12:])
        transcript = Transcript(
            self.id,
            cwd=str(self.folder),
            branch="main",
            start=self.events[0][0],
            seed=number,
            version="2.1.105",
        )
        for at, kind, value in self.events:
            transcript.wait(max(0.0, (at - transcript.now).total_seconds()))
            if kind == "prompt":
                transcript.user(str(value))
            elif "subagent" in kind:
                assert isinstance(value, tool_calls.Call)
                transcript.delegate("Change the file", "Done.", calls=[value])
                if kind == "lost subagent":
                    transcript.agents.pop()
            elif isinstance(value, tool_calls.Call):
                transcript.run(value)
            elif isinstance(value, tuple):
                command, place, subject, done_at = value
                sha = self.printed.get(place)
                output = f"[main {sha}] {subject}\n 2 files changed, 12 insertions(+)" if sha else ""
                call = tool_calls.bash(command, output)
                transcript.assistant(tools=[tool_calls.bash(command)])
                transcript.wait(max(0.0, (done_at - transcript.now).total_seconds()))
                transcript.result(transcript.tool_ids[-1], call.content, tool_use_result=call.tool_use_result)
        transcript.write(root)


def run_git(folder: Path, *arguments: str) -> str:
    """Return the output of git in a simulated repository."""
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=True).stdout.decode()


def _formatted(lines: list[str]) -> Iterator[str]:
    for line in lines:
        assert isinstance(line, Line)
        yield from map(line.reformatted, format_lines([line]))


def _smallest_change(before: list[str], after: list[str]) -> tuple[str, str]:
    """Return the differing lines of two texts, with one line around them."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    start, end = max(0, start - 1), max(0, end - 1)
    old, new = ("".join(f"{line}\n" for line in lines[start : len(lines) - end]) for lines in (before, after))
    return old, new


def simulate(options: Options, folder: Path) -> SimulatedProject:
    """Run all sessions and the user in time order."""
    project = SimulatedProject(options, folder)
    project.code.large_file_share = options.large_file
    project.code.boilerplate_share = options.boilerplate
    project.code.modelled_share = options.modelled
    random = project.random
    for path, lines in project.code.first_files():
        project.put(path, lines, None)
    project.commit(_START - timedelta(days=1), "Start", list(project.files))
    queue: list[tuple[datetime, int, _Steps | None]] = []
    last_at = _START
    day_count = max(1.0, options.session_count / options.sessions_per_day)
    for number in range(options.session_count):
        hours = random.random() * _WORK_HOURS
        session = _Session(project, options.first_number + number)
        at = _START + timedelta(days=int(random.random() * day_count), hours=hours)
        if project.sessions and random.random() < options.parallel:
            session.area = project.sessions[-1].area
            at = last_at + timedelta(minutes=random.randint(0, 20))
        last_at = at
        project.sessions.append(session)
        heapq.heappush(queue, (at, number, session.run(at)))
    for number in range(round(options.session_count * options.user_commits)):
        hours = random.random() * _WORK_HOURS
        at = _START + timedelta(days=int(random.random() * day_count), hours=hours)
        heapq.heappush(queue, (at, options.session_count + number, None))
    started: set[int] = set()
    while queue:
        at, number, steps = heapq.heappop(queue)
        if steps is None:
            _user_commit(project, at)
            continue
        try:
            next_at = steps.send(at) if number in started else next(steps)
            started.add(number)
            heapq.heappush(queue, (next_at, number, steps))
        except StopIteration:
            pass
    return project


def _user_commit(project: SimulatedProject, at: datetime) -> None:
    """Change files without uncommitted work of a session, and commit them."""
    random = project.random
    paths: list[str] = []
    for _ in range(random.choice([1, 1, 2, 3])):
        area = random.choice(project.code.areas)
        clean = {path: lines for path, lines in project.files.items() if path not in project.changed_by}
        path, _, after = project.code.change(clean, area, random, is_user=True)
        if path in project.changed_by:
            continue
        project.put(path, after, None)
        paths.append(path)
    if project.options.typed_files and random.random() < project.options.typed_files:
        path, lines = project.code.typed_file(project.files)
        project.put(path, lines, None)
        paths.append(path)
    if project.options.relocated and random.random() < project.options.relocated:
        paths += _relocate(project)
    project.commit(at, project.code.subject(random.choice(project.code.areas)), paths)


def _relocate(project: SimulatedProject) -> list[str]:
    """Move code from one file to another, as the user does. Return the paths."""
    clean = [
        path
        for path, lines in project.files.items()
        if path.startswith("src/") and path not in project.changed_by and len(lines) > 40
    ]
    if len(clean) < 2:
        return []
    source, target = project.random.sample(clean, 2)
    if project.random.random() < 0.5:
        target = f"{source.rpartition('/')[0]}/part{len(project.commits)}.py"
    rest, moved = project.code.relocated(project.files[source])
    project.put(source, rest, None)
    project.put(target, [*project.files.get(target, []), *moved], None)
    return [source, target]
