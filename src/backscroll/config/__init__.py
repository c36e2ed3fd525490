"""Paths and settings: from an option, else the environment, else the settings file, else the default.

    jsonc.py          edit JSON with comments
    settings_file.py  change the settings file of another program, with a backup

Values are not structs: importing msgspec takes longer than a sync of a thousand unchanged files.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple

from backscroll.errors import UsageError

_DATA_FOLDERS = {"linux": ".local/share", "darwin": "Library/Application Support"}
_OTHER_FOLDER_VARIABLES = {"XDG_DATA_HOME", "ANDROID_ROOT"}  # if set, platformdirs decides


class Machine(NamedTuple):
    """Home folder, environment variables and operating system. Tests create their own."""

    home: Path
    environ: Mapping[str, str] = {}
    system: str = "linux"  # value of sys.platform

    def folder(self, variable: str, default: Path) -> Path:
        """Return the folder in an environment variable, or the default if it is unset or empty."""
        value = self.environ.get(variable, "")
        return self.expanded(value) if value else default

    def expanded(self, path: str) -> Path:
        """Return a path with a leading ``~`` replaced by this machine's home."""
        if path == "~" or path.startswith(("~/", "~\\")):
            return self.home / path[2:]
        return Path(path)


def given_path(name: str, path: str | os.PathLike[str]) -> Path:
    """Return a path that a caller passed, with ``~`` expanded.

    Raises `UsageError` if it is empty, names an unknown user or cannot be a path. ``name`` says what it is:
    "target folder".
    """
    text = os.fspath(path)
    if not text:
        raise UsageError(f"The {name} is empty. Name a folder.")
    try:
        is_valid = b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        is_valid = False
    if not is_valid:
        raise UsageError(f"The {name} {text!r} is not a valid path on this system.")
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        user = Path(text).parts[0]
        raise UsageError(
            f"The {name} names the user {user!r}, who does not exist. A folder of this name is ./{user}."
        ) from error


def given_maps(maps: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return old and new folders that a caller passed, with ``~`` expanded. Raises `UsageError`.

    An old folder can be one of Windows.
    """
    return tuple((_old_folder(old), str(given_path("new folder of a map", new))) for old, new in maps.items())


def _old_folder(path: str) -> str:
    expanded = os.path.expanduser(path)  # noqa: PTH111 - it can be a path of Windows
    is_absolute = PurePosixPath(expanded).is_absolute() or PureWindowsPath(expanded).is_absolute()
    if not is_absolute or not expanded.strip("/"):
        raise UsageError(
            f"{path!r} cannot be mapped. Name an absolute path of the other machine below its root folder,"
            " such as /home/ada=/home/bea."
        )
    return expanded


def this_machine() -> Machine:
    """Return the machine this process runs on."""
    return Machine(Path.home(), dict(os.environ), sys.platform)


def archive_home(flag: Path | None, machine: Machine) -> Path:
    """Return the archive folder: ``--home``, else ``BACKSCROLL_HOME``, else the default for user data."""
    if flag is not None:
        return flag
    named = machine.environ.get("BACKSCROLL_HOME", "")
    if named:
        return machine.expanded(named)
    return _default_home()


def _default_home() -> Path:
    """Return the operating system's default folder for user data."""
    home, below = os.environ.get("HOME", ""), _DATA_FOLDERS.get(sys.platform)
    if below is not None and home.startswith("/") and not _OTHER_FOLDER_VARIABLES & os.environ.keys():
        return Path(home, below, "backscroll")
    from platformdirs import user_data_path  # importing it takes 10 % of most commands

    return user_data_path("backscroll", appauthor=False)


class Settings(NamedTuple):
    """Values of ``config.toml`` in the archive folder."""

    exclude: tuple[str, ...] = ()  # patterns of workspaces that are not archived
    prices: Path | None = None  # the user's own price table
    backup_dir: Path | None = None  # the folder of backups
    journal_folders: tuple[tuple[Path, Path], ...] = ()  # checkout, and its journal relative to it
    journal_model: str | None = None  # the language model that writes the journal
    is_journal_on_commit: bool = True  # the git hook writes an entry for each commit
    commits_window: int = 30  # minutes before a commit without a session; 0 switches the context off
    unknown: tuple[str, ...] = ()  # keys that are not settings


def settings(home: Path, machine: Machine) -> Settings:
    """Read the settings of an archive; return defaults without a file. Raise UsageError if it is invalid."""
    path = home / "config.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return Settings()
    except OSError as error:
        if not os.access(home, os.X_OK):
            return Settings()  # opening the archive reports this
        raise UsageError(f"Cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not valid TOML: it is not UTF-8.") from error
    import tomllib  # start-up time: most archives have no settings file

    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}.") from error
    exclude = values.pop("exclude", [])
    if not isinstance(exclude, list) or not all(isinstance(pattern, str) and pattern for pattern in exclude):
        raise UsageError(f'{path}: exclude must be a list of patterns, such as exclude = ["~/private/**"].')
    prices = values.pop("prices", None)
    if prices is not None and (not isinstance(prices, str) or not prices):
        raise UsageError(f'{path}: prices must be the path of a price table, such as prices = "prices.toml".')
    backup_dir = values.pop("backup_dir", None)
    if backup_dir is not None and (not isinstance(backup_dir, str) or not backup_dir):
        raise UsageError(
            f'{path}: backup_dir must be the path of a folder, such as backup_dir = "~/backups".'
        )
    folders, model, on_commit, unknown = _journal_settings(values.pop("journal", {}), path, machine)
    window, unknown_commits = _commits_window(values.pop("commits", {}), path)
    return Settings(
        exclude=tuple(str(machine.expanded(pattern)) for pattern in exclude),
        prices=home / machine.expanded(prices) if prices is not None else None,
        backup_dir=home / machine.expanded(backup_dir) if backup_dir is not None else None,
        journal_folders=folders,
        journal_model=model,
        is_journal_on_commit=on_commit,
        commits_window=window,
        unknown=tuple(sorted([*values, *unknown, *unknown_commits])),
    )


def _commits_window(table: object, path: Path) -> tuple[int, list[str]]:
    """Return ``window`` and unknown keys of ``[commits]``."""
    if not isinstance(table, dict):
        raise UsageError(f"{path}: commits must be a table, such as [commits].")
    window = table.get("window", 30)
    if not isinstance(window, int) or isinstance(window, bool) or window < 0:
        raise UsageError(f"{path}: commits.window must be a number of minutes, such as window = 30.")
    return window, [f"commits.{key}" for key in table if key != "window"]


def _journal_settings(
    table: object, path: Path, machine: Machine
) -> tuple[tuple[tuple[Path, Path], ...], str | None, bool, list[str]]:
    """Return folders, model, whether the git hook writes entries, and unknown keys of ``[journal]``."""
    if not isinstance(table, dict):
        raise UsageError(f"{path}: journal must be a table, such as [journal].")
    folders, model, on_commit = table.get("folders", {}), table.get("model"), table.get("on_commit", True)
    if not isinstance(folders, dict) or not all(isinstance(name, str) and name for name in folders.values()):
        raise UsageError(
            f'{path}: journal.folders must be a table of repositories, such as "~/projects/shop" = "journal".'
        )
    if model is not None and (not isinstance(model, str) or not model):
        raise UsageError(f'{path}: journal.model must be the name of a model, such as model = "gpt-5-mini".')
    if not isinstance(on_commit, bool):
        raise UsageError(f"{path}: journal.on_commit must be true or false.")
    named = tuple((machine.expanded(checkout), machine.expanded(name)) for checkout, name in folders.items())
    unknown = [f"journal.{key}" for key in table if key not in ("folders", "model", "on_commit")]
    return named, model, on_commit, unknown


class NamedRoot(NamedTuple):
    """Folder given as the root of a source."""

    source: str
    path: Path


def named_roots(flags: Iterable[str], machine: Machine) -> list[NamedRoot]:
    """Parse the roots of ``--root SOURCE=DIR`` or, without any, of ``BACKSCROLL_ROOTS``."""
    items = list(flags) or machine.environ.get("BACKSCROLL_ROOTS", "").split(os.pathsep)
    roots: list[NamedRoot] = []
    for item in filter(None, items):
        source, equals, path = item.partition("=")
        if not equals or not source or not path:
            raise UsageError(f"Invalid root {item!r}. Use SOURCE=DIR, such as claude-code=~/.claude.")
        roots.append(NamedRoot(source, machine.expanded(path).absolute()))
    return roots
