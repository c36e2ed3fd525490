"""Hooks in the settings file of an assistant."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from backscroll.config.jsonc import NotJsonError, parse, with_element, with_field, without_elements
from backscroll.config.settings_file import SettingsChange, backups_of, plan_change, read_settings
from backscroll.hooks.shell_command import is_own_command, missing_files
from backscroll.model.hook import HookFile, HookStatus


def plan_install(file: HookFile, command: str) -> SettingsChange:
    """Return the change that registers a command for all events. Other entries and comments stay."""
    return plan_change(file.path, lambda text: _installed(file, text, command), partial(_changed_lines, file))


def plan_uninstall(file: HookFile) -> SettingsChange:
    """Return the change that removes all commands of Backscroll.

    A file that has not changed since the installation becomes what it was before, to the byte.
    """
    change = plan_change(file.path, lambda text: _uninstalled(file, text), partial(_changed_lines, file))
    if change.before is None or not change.is_needed:
        return change
    before = change.before.decode("utf-8")
    commands = {command for _, command in _own_commands(file, before)}
    if len(commands) != 1:
        return change
    command = commands.pop()
    for backup in backups_of(file.path):
        original = read_settings(backup) or b""
        if _is_result_of_install(file, original, command, before):
            return SettingsChange(change.path, change.before, original, change.lines)
    if _installed(file, "", command) == before:
        return SettingsChange(change.path, change.before, None, change.lines)
    return change


def hook_status(target: str, file: HookFile, command: str) -> HookStatus:
    """Return which events run a command of Backscroll, and whether it exists."""
    status = HookStatus(target=target, path=str(file.path), missing_events=file.events)
    try:
        text = (read_settings(file.path) or b"").decode("utf-8")
        own = list(_own_commands(file, text))
        settings = parse(text)
    except (NotJsonError, ValueError, RecursionError, OSError) as error:
        return HookStatus(
            target=target, path=str(file.path), problems=(f"The file cannot be read: {error}.",)
        )
    if not own:
        return status
    events = tuple(dict.fromkeys(event for event, _ in own))
    commands = list(dict.fromkeys(used for _, used in own))
    problems = [f"{path} does not exist." for used in commands for path in missing_files(used)]
    if any(used != command for used in commands):
        problems.append("The command is not the one of this installation and archive.")
    if settings.get("disableAllHooks") is True:
        problems.append("The setting disableAllHooks switches all hooks off.")
    return HookStatus(
        target=target,
        path=str(file.path),
        events=events,
        missing_events=tuple(event for event in file.events if event not in events),
        command=commands[0],
        problems=tuple(dict.fromkeys(problems)),
    )


def _installed(file: HookFile, text: str, command: str) -> str:
    own = list(_own_commands(file, text))
    if sorted(own) == sorted((event, command) for event in file.events):
        return text  # its formatting may differ after the tool has written the file
    text = _uninstalled(file, text)
    for name, value in file.fields.items():
        text = with_field(text, name, value)
    entry = {**file.entry, "command": command}
    for event in file.events:
        text = with_element(text, ("hooks", event), {"hooks": [entry]} if file.is_grouped else entry)
    return text


def _uninstalled(file: HookFile, text: str) -> str:
    for event, entries in _events(text).items():
        if not isinstance(entries, list):
            continue
        if file.is_grouped:
            for position in reversed(range(len(entries))):
                if _inner(entries[position]):
                    text = without_elements(text, ("hooks", event, position, "hooks"), _is_own_entry)
        else:
            text = without_elements(text, ("hooks", event), _is_own_entry)
    return text


def _own_commands(file: HookFile, text: str) -> Iterator[tuple[str, str]]:
    """Yield event and command of every own entry."""
    for event, entries in _events(text).items():
        for entry in entries if isinstance(entries, list) else []:
            for one in _inner(entry) if file.is_grouped else [entry]:
                if _is_own_entry(one):
                    yield event, one["command"]


def _events(text: str) -> dict[str, Any]:
    hooks = parse(text).get("hooks")
    if hooks is None:
        return {}
    if not isinstance(hooks, dict):
        raise NotJsonError("hooks is not an object")
    return hooks


def _inner(group: object) -> list[Any]:
    entries = group.get("hooks") if isinstance(group, dict) else None
    return entries if isinstance(entries, list) else []


def _is_own_entry(entry: object) -> bool:
    return isinstance(entry, dict) and is_own_command(entry.get("command"))


def _is_result_of_install(file: HookFile, original: bytes, command: str, current: str) -> bool:
    try:
        return _installed(file, original.decode("utf-8"), command) == current
    except (NotJsonError, ValueError, RecursionError):
        return False


def _changed_lines(file: HookFile, before: str, after: str) -> tuple[str, ...]:
    """Return the added and removed entries. The rest of the file may contain keys and is not shown."""
    old, new = list(_own_commands(file, before)), list(_own_commands(file, after))
    lines: list[str] = []
    for mark, entries in (
        ("-", [one for one in old if one not in new]),
        ("+", [one for one in new if one not in old]),
    ):
        for command in dict.fromkeys(command for _, command in entries):
            events = ", ".join(f"hooks.{event}" for event, used in entries if used == command)
            entry = json.dumps({**file.entry, "command": command}, ensure_ascii=False)
            lines += [f"{mark} {events}:", f"{mark}   {entry}"]
    return tuple(lines)
