"""Where things live: flag, then environment, then file, then default.

Values are tuples with names here: loading what makes structs takes longer than a refresh of a thousand files.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from backscroll.errors import UsageError

__all__ = ["Machine", "NamedRoot", "Settings", "archive_home", "named_roots", "settings", "this_machine"]


_BELOW_HOME = {"linux": ".local/share", "darwin": "Library/Application Support"}
_ELSEWHERE = {"XDG_DATA_HOME", "ANDROID_ROOT"}  # variables that name, or hint at, another place


class Machine(NamedTuple):
    """A home folder, an environment and an operating system; tests make their own."""

    home: Path
    environ: Mapping[str, str] = {}
    system: str = "linux"  # as sys.platform says it

    def folder(self, variable: str, default: Path) -> Path:
        """The folder an environment variable names, or the default when it is unset or empty."""
        named = self.environ.get(variable, "")
        return self.expanded(named) if named else default

    def expanded(self, path: str) -> Path:
        """A path as typed, with a leading ``~`` standing for this machine's home."""
        if path == "~" or path.startswith(("~/", "~\\")):
            return self.home / path[2:]
        return Path(path)


def this_machine() -> Machine:
    """The machine this process runs on."""
    return Machine(Path.home(), dict(os.environ), sys.platform)


def archive_home(flag: Path | None, machine: Machine) -> Path:
    """The archive's folder: ``--home``, then ``BACKSCROLL_HOME``, then the system's place for such things."""
    if flag is not None:
        return flag
    named = machine.environ.get("BACKSCROLL_HOME", "")
    if named:
        return machine.expanded(named)
    return _usual_home()


def _usual_home() -> Path:
    """The system's place for such things."""
    home, below = os.environ.get("HOME", ""), _BELOW_HOME.get(sys.platform)
    if below is not None and home.startswith("/") and not _ELSEWHERE & os.environ.keys():
        return Path(home, below, "backscroll")
    from platformdirs import user_data_path  # loading it takes a tenth of the time of most commands

    return user_data_path("backscroll", appauthor=False)


class Settings(NamedTuple):
    """What the file ``config.toml`` in the archive's folder says."""

    exclude: tuple[str, ...] = ()  # patterns of workspaces that are not to be kept
    prices: Path | None = None  # a price table of one's own
    unknown: tuple[str, ...] = ()  # keys that nobody here knows


def settings(home: Path, machine: Machine) -> Settings:
    """The settings of an archive; none when it has no file. One that cannot be understood is a wrong call."""
    path = home / "config.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return Settings()
    except OSError as error:
        if not os.access(home, os.X_OK):
            return Settings()  # what cannot be looked into is said where the archive is opened
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not TOML: it is not UTF-8") from error
    import tomllib  # only those who have a file need it

    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
    exclude = said.pop("exclude", [])
    if not isinstance(exclude, list) or not all(isinstance(one, str) and one for one in exclude):
        raise UsageError(f'{path}: exclude is a list of patterns, for example exclude = ["~/private/**"]')
    prices = said.pop("prices", None)
    if prices is not None and (not isinstance(prices, str) or not prices):
        raise UsageError(f'{path}: prices is the path of a price table, for example prices = "prices.toml"')
    return Settings(
        exclude=tuple(str(machine.expanded(one)) for one in exclude),
        prices=home / machine.expanded(prices) if prices is not None else None,
        unknown=tuple(sorted(said)),
    )


class NamedRoot(NamedTuple):
    """A folder that was named as a source's root."""

    source: str
    path: Path


def named_roots(flags: Iterable[str], machine: Machine) -> list[NamedRoot]:
    """The roots named by ``--root SOURCE=DIR`` or, without any, by ``BACKSCROLL_ROOTS``."""
    items = list(flags) or machine.environ.get("BACKSCROLL_ROOTS", "").split(os.pathsep)
    roots: list[NamedRoot] = []
    for item in filter(None, items):
        source, equals, path = item.partition("=")
        if not equals or not source or not path:
            raise UsageError(f"a root is written SOURCE=DIR, for example claude-code=~/.claude; got {item!r}")
        roots.append(NamedRoot(source, machine.expanded(path).absolute()))
    return roots
