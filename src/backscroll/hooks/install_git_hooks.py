"""Hooks of git: a block in the scripts of a repository or, from git 2.54 on, entries of the configuration.

An existing script stays and runs as before. In a shell script, the block is inserted at the start, so that an
early exit does not skip it. Any other program is renamed, and a new script runs it.
"""

import re
import stat
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from backscroll.errors import DestinationError, RepositoryError, UsageError
from backscroll.git.process import decode, output_or_empty, run_git
from backscroll.git.repository import open_repository
from backscroll.hooks.shell_command import is_own_command, missing_files
from backscroll.model.hook import HookStatus

EVENTS = ("post-commit", "post-rewrite")
MIN_CONFIGURED_VERSION = (2, 54)  # the first git with hooks in its configuration
_NAME = "hook.backscroll"
_BEGIN, _END = "# >>> backscroll >>>\n", "# <<< backscroll <<<\n"
_BLOCK = re.compile(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}".encode(), re.DOTALL)
_SHELL = re.compile(
    rb"#![ \t]*(?:\S*/)?(?:env[ \t]+(?:-S[ \t]+)?)?(?:\S*/)?(?:sh|bash|dash|ash|ksh|zsh)(?:[ \t][^\r\n]*)?\n"
)
_RENAMED = ".before-backscroll"
_RUN_RENAMED = f'if [ -x "$0{_RENAMED}" ]; then exec "$0{_RENAMED}" "$@"; fi\n'


class _File(Struct, frozen=True):
    """A new state of a script. Content None deletes it; ``moved_from`` is renamed to ``path`` first."""

    path: Path
    content: bytes | None
    mode: int = 0o755
    moved_from: Path | None = None


class GitHookChange(Struct, frozen=True):
    """A change of git hooks: files, or commands of ``git config``."""

    folder: Path  # where git runs
    place: str  # hooks folder, or name of the configuration
    files: tuple[_File, ...] = ()
    settings: tuple[tuple[str, ...], ...] = ()  # arguments of git
    lines: tuple[str, ...] = ()  # to show to the user
    notes: tuple[str, ...] = ()
    git_folder: Path | None = None  # of the repository; None for all repositories
    is_removal: bool = False

    @property
    def is_needed(self) -> bool:
        return bool(self.files or self.settings)

    def apply(self) -> None:
        """Write the files and settings. Raises `DestinationError` or `RepositoryError`."""
        try:
            for file in self.files:
                _write(file)
        except OSError as error:
            raise DestinationError(f"Cannot write {error.filename}: {error.strerror}", self.folder) from error
        for arguments in self.settings:
            run_git(self.folder, *arguments)


def plan_install(folder: Path, command: str, *, is_global: bool) -> GitHookChange:
    """Return the change that installs the hooks in the repository at a folder, or in all repositories."""
    if is_global or has_configured_hooks(folder):
        return _plan_configured(folder, command, is_global=is_global)
    repository = open_repository(folder)
    hooks = _hooks_folder(repository.folder)
    files: list[_File] = []
    lines: list[str] = []
    for event in EVENTS:
        path = hooks / event
        if _is_tracked(repository.folder, path):
            raise UsageError(
                f"{path} is part of the repository. Add this line to it, after the first line:\n  {command}"
            )
        changed = _installed(path, command)
        if changed:
            files += changed
            lines.append(f"+ {path}{' (runs the existing hook too)' if path.exists() else ''}")
    if lines:
        lines += [f"+   {command}"]
    return GitHookChange(
        folder=repository.folder,
        place=str(hooks),
        files=tuple(files),
        lines=tuple(lines),
        notes=_notes(repository.folder, hooks),
        git_folder=repository.git_folder,
    )


def plan_uninstall(folder: Path, *, is_global: bool) -> GitHookChange:
    """Return the change that removes the hooks. Existing scripts become what they were, to the byte."""
    if is_global:
        return _plan_unconfigured(folder, "--global", None)
    repository = open_repository(folder)
    hooks = _hooks_folder(repository.folder)
    files = [file for event in EVENTS for file in _uninstalled(hooks / event)]
    local = _plan_unconfigured(repository.folder, "--local", repository.git_folder)
    return GitHookChange(
        folder=repository.folder,
        place=str(hooks) if files else local.place,
        files=tuple(files),
        settings=local.settings,
        lines=(*dict.fromkeys(f"- {file.moved_from or file.path}" for file in files), *local.lines),
        git_folder=repository.git_folder,
        is_removal=True,
    )


def status(folder: Path, command: str) -> list[HookStatus]:
    """Return the state of the hooks in the user's configuration and in the repository at a folder, if any."""
    found = []
    if (everywhere := _configured_status(folder, "--global", command)) is not None:
        found.append(everywhere)
    try:
        repository = open_repository(folder)
        hooks = _hooks_folder(repository.folder)
    except (RepositoryError, UsageError):
        return found
    if (local := _configured_status(repository.folder, "--local", command)) is not None:
        return [*found, local]
    used = {event: text for event in EVENTS if (text := _own_block(hooks / event)) is not None}
    problems = [
        f"{path} does not exist." for text in used.values() for path in missing_files(_program_part(text))
    ]
    if any(command not in text for text in used.values()):
        problems.append("The command is not the one of this installation and archive.")
    problems += [f"{hooks / event} is not executable." for event in used if not _is_executable(hooks / event)]
    if found and not used:
        return found
    return [
        *found,
        HookStatus(
            target="git",
            path=str(hooks),
            events=tuple(used),
            missing_events=tuple(event for event in EVENTS if event not in used),
            command=command if used else None,
            problems=tuple(dict.fromkeys(problems)),
        ),
    ]


def has_configured_hooks(folder: Path) -> bool:
    """Return whether this git reads hooks from its configuration."""
    numbers = re.findall(r"\d+", decode(run_git(folder, "--version")))
    return tuple(map(int, numbers[:2])) >= MIN_CONFIGURED_VERSION


# Configuration ------------------------------------------------------------------------------------


def _plan_configured(folder: Path, command: str, *, is_global: bool) -> GitHookChange:
    if not has_configured_hooks(folder):
        required = ".".join(map(str, MIN_CONFIGURED_VERSION))
        raise UsageError(f"--global needs git {required} or newer. Install the hook in each repository.")
    scope = "--global" if is_global else "--local"
    repository = open_repository(folder) if not is_global else None
    where = repository.folder if repository is not None else folder
    # An older git may have got scripts.
    scripts = (
        [_uninstalled(_hooks_folder(where) / event) for event in EVENTS] if repository is not None else []
    )
    settings: list[tuple[str, ...]] = []
    if _setting(where, scope, "command") != [command]:
        settings.append(("config", scope, "--replace-all", f"{_NAME}.command", command))
    if _setting(where, scope, "event") != list(EVENTS):
        settings += [
            ("config", scope, "--replace-all", f"{_NAME}.event", EVENTS[0]),
            *(("config", scope, "--add", f"{_NAME}.event", event) for event in EVENTS[1:]),
        ]
    return GitHookChange(
        folder=where,
        place=_place(where, scope),
        files=tuple(file for files in scripts for file in files),
        settings=tuple(settings),
        lines=tuple(f"+ {name} = {value}" for *_, name, value in settings),
        git_folder=repository.git_folder if repository is not None else None,
    )


def _plan_unconfigured(folder: Path, scope: str, git_folder: Path | None) -> GitHookChange:
    is_set = bool(_setting(folder, scope, "command") or _setting(folder, scope, "event"))
    return GitHookChange(
        folder=folder,
        place=_place(folder, scope),
        settings=(("config", scope, "--remove-section", _NAME),) if is_set else (),
        lines=(f"- {_NAME} in {_place(folder, scope)}",) if is_set else (),
        git_folder=git_folder,
        is_removal=True,
    )


def _configured_status(folder: Path, scope: str, command: str) -> HookStatus | None:
    commands, events = _setting(folder, scope, "command"), _setting(folder, scope, "event")
    if not commands:
        return None
    problems = [f"{path} does not exist." for one in commands for path in missing_files(_program_part(one))]
    if commands != [command]:
        problems.append("The command is not the one of this installation and archive.")
    if not has_configured_hooks(folder):
        problems.append("This git is too old to read hooks from its configuration.")
    return HookStatus(
        target="git",
        path=_place(folder, scope),
        events=tuple(events),
        missing_events=tuple(event for event in EVENTS if event not in events),
        command=commands[0],
        problems=tuple(problems),
    )


def _setting(folder: Path, scope: str, name: str) -> list[str]:
    return decode(output_or_empty(folder, "config", scope, "--get-all", f"{_NAME}.{name}")).splitlines()


def _place(folder: Path, scope: str) -> str:
    return f"git configuration of {folder if scope == '--local' else 'the user'}"


# Scripts ------------------------------------------------------------------------------------------


def _hooks_folder(folder: Path) -> Path:
    """Return the folder from which git runs hooks: ``core.hooksPath``, or that of the repository."""
    path = Path(decode(run_git(folder, "rev-parse", "--git-path", "hooks")).removesuffix("\n"))
    hooks = folder / path
    if hooks.exists() and not hooks.is_dir():
        raise UsageError(f"core.hooksPath is {path}, so that git runs no hooks. Unset it first.")
    return hooks


def _installed(path: Path, command: str) -> list[_File]:
    """Return the files that make a hook run the command; none if it does."""
    block = f"{_BEGIN}{command}\n{_END}".encode()
    if not path.is_symlink() and not path.exists():
        return [_File(path, b"#!/bin/sh\n" + block)]
    own = _own_block(path)
    content = path.read_bytes()
    mode = stat.S_IMODE(path.stat().st_mode)
    if own is not None:
        if own.encode() == block:
            return []
        return [_File(path, _BLOCK.sub(lambda _: block, content, count=1), mode)]
    shebang = _SHELL.match(content)
    if shebang is not None and not path.is_symlink() and _is_executable(path):
        return [_File(path, content[: shebang.end()] + block + content[shebang.end() :], mode)]
    renamed = path.with_name(f"{path.name}{_RENAMED}")
    if renamed.exists() or renamed.is_symlink():
        raise UsageError(f"{renamed} exists already. Move it away first.")
    script = b"#!/bin/sh\n" + block + _RUN_RENAMED.encode()
    return [_File(renamed, None, moved_from=path), _File(path, script)]


def _uninstalled(path: Path) -> list[_File]:
    """Return the files that remove the command from a hook; none if it has none."""
    if _own_block(path) is None:
        return []
    content = _BLOCK.sub(b"", path.read_bytes(), count=1)
    renamed = path.with_name(f"{path.name}{_RENAMED}")
    if content == b"#!/bin/sh\n" + _RUN_RENAMED.encode() and (renamed.exists() or renamed.is_symlink()):
        return [_File(path, None, moved_from=renamed)]
    if content in (b"#!/bin/sh\n", b"#!/bin/sh\n" + _RUN_RENAMED.encode()):
        return [_File(path, None)]
    return [_File(path, content, stat.S_IMODE(path.stat().st_mode))]


def _write(file: _File) -> None:
    if file.moved_from is not None:
        file.moved_from.replace(file.path)
    elif file.content is None:
        file.path.unlink(missing_ok=True)
    else:
        file.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.path.with_name(f"{file.path.name}.backscroll")
        temporary.write_bytes(file.content)
        temporary.chmod(file.mode)
        temporary.replace(file.path)


def _own_block(path: Path) -> str | None:
    """Return the block in a script; None if it has none."""
    try:
        found = _BLOCK.search(path.read_bytes())
    except OSError:
        return None
    text = found[0].decode("utf-8", "replace") if found else ""
    return text if is_own_command(text) else None


def _program_part(command: str) -> str:
    """Return interpreter and program in a command, without the shell syntax around them."""
    return command.partition("( ")[2].partition(' "$')[0]


def _is_executable(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o111)


def _is_tracked(folder: Path, path: Path) -> bool:
    return bool(output_or_empty(folder, "ls-files", "--", str(path)))


def _notes(folder: Path, hooks: Path) -> tuple[str, ...]:
    """Return what a user should know about a hooks folder that is not the repository's own."""
    configured: Sequence[str] = decode(output_or_empty(folder, "config", "core.hooksPath")).split()
    if not configured:
        return ()
    if hooks.is_relative_to(folder) and not output_or_empty(folder, "check-ignore", str(hooks / EVENTS[0])):
        return (f"{hooks} is inside of the repository: do not commit the hooks.",)
    return (f"core.hooksPath is {hooks}: the hooks run in every repository that uses it.",)
