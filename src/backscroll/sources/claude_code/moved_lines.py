"""Edit lines of transcripts: single fields, the paths of folders, and the ids of a copy.

Only the edited fields change; all other bytes of a line stay as they are. Message text, tool inputs, tool
results and signatures are never edited.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from uuid import UUID, uuid5

from backscroll.model.workspace import PathMaps
from backscroll.sources.claude_code.locations import is_id
from backscroll.sources.json_edits import (
    Field,
    Members,
    edit_bytes,
    edit_object,
    encode_text,
    fields_of,
    replace_strings,
)

# Where folders are recorded: in each line, and in state lines. The model has seen none of them.
FOLDER_MEMBERS = {
    "": ("cwd",),
    "worktree-state": ("worktreeSession",),
    "relocated": ("relocatedCwd",),
    "file-history-snapshot": ("snapshot",),
    "file-history-delta": ("trackingPath", "backup"),
}

# State lines that describe the conversation. Others describe a process, a remote session, or costs that the
# tool would count twice; the tool's own forks have none of them.
_COPIED_STATES = frozenset(
    {
        "agent-color",
        "agent-name",
        "agent-setting",
        "ai-title",
        "content-replacement",
        "custom-title",
        "file-history-delta",
        "file-history-snapshot",
        "fork-context-ref",
        "last-prompt",
        "mode",
        "permission-mode",
        "pr-link",
        "queue-operation",
        "relocated",
        "result",
        "started",
        "summary",
        "tag",
    }
)
# Members with the uuid of a line, or a list of them, or an object with some.
_UUID_MEMBERS = (
    "uuid",
    "parentUuid",
    "logicalParentUuid",
    "sourceToolAssistantUUID",
    "leafUuid",
    "messageId",
    "snapshotMessageId",
    "parentLastUuid",
    "refusedUserMessageUuid",
    "retractedMessageUuids",
    "supersedesUuids",
    "summarizedTurnPromptUuids",
    "compactMetadata",
)
_AGENT_MEMBERS = ("toolUseResult", "data")  # objects with an agentId: of a result, and of progress
_SESSION_MEMBERS = ("sessionId", "parentSessionId")
# Teams and plan files belong to the original. The tool's own forks remove these members, too.
_REMOVED_MEMBERS = ("teamName", "agentName", "slug")
_NO_LINE = "00000000-0000-0000-0000-000000000000"  # leafUuid after a rewind to the start


_FOLDERS = Members(FOLDER_MEMBERS)


def with_new_folders(line: bytes, paths: PathMaps) -> bytes:
    """Return a line with the new folders. A line that is not a JSON object stays as it is."""
    return edit_bytes(line, partial(_FOLDERS.edit, new_string=paths.path))


class Fork:
    """Copies the lines of a session under a new id. The same line always gives the same copy.

    As in the tool's own forks, each line gets a new uuid and names the line that it was copied from, so that
    readers count a copied response once. ``agent_ids`` are the new ids of subagents. They are replaced in
    members that only the tool reads, not in the result of a call as the model saw it.
    """

    def __init__(
        self, old_id: str, new_id: str, paths: PathMaps | None, agent_ids: Mapping[str, str]
    ) -> None:
        self._old_id = old_id
        self._new_id = new_id
        self._agent_ids = agent_ids
        self._namespace = UUID(new_id)
        self._paths = paths

    def lines(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the copies of lines. Damaged lines are dropped: they cannot be given new ids."""
        for line in lines:
            try:
                yield self._line(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
            except ValueError:
                continue

    def _line(self, text: str) -> str:
        fields = fields_of(text)
        kind = fields["type"].value if "type" in fields else None
        if "uuid" not in fields and kind not in _COPIED_STATES:
            return ""
        changes = _FOLDERS.changes(text, fields, self._paths.path) if self._paths is not None else {}
        for name in _UUID_MEMBERS:
            if (field := fields.get(name)) is not None:
                changes[name] = replace_strings(text[field.start : field.end], self._new_uuid)
        if (snapshot := fields.get("snapshot")) is not None and isinstance(snapshot.value, dict):
            inner = changes.get("snapshot") or text[snapshot.start : snapshot.end]
            changes["snapshot"] = self._snapshot(inner)
        for name in _SESSION_MEMBERS:
            if name in fields and fields[name].value == self._old_id:
                changes[name] = encode_text(self._new_id)
        if self._agent_ids:
            changes |= self._agents(text, fields)
        changes |= {name: None for name in _REMOVED_MEMBERS if name in fields and "uuid" in fields}
        if "uuid" in fields:
            origin = {"sessionId": self._old_id, "messageUuid": fields["uuid"].value}
            changes["forkedFrom"] = json.dumps(origin, separators=(",", ":"))
        elif kind == "queue-operation":  # a prompt that is in no other line; the reader counts it once
            changes["forkedFrom"] = json.dumps({"sessionId": self._old_id}, separators=(",", ":"))
        return edit_object(text, fields, changes)

    def _agents(self, text: str, fields: Mapping[str, Field]) -> dict[str, str | None]:
        """Return the new ids of subagents in a line, its result and its progress."""
        changes: dict[str, str | None] = {}
        field = fields.get("agentId")
        if field is not None and (new_id := self._new_agent(field.value)) is not None:
            changes["agentId"] = encode_text(new_id)
        for name in _AGENT_MEMBERS:
            field = fields.get(name)
            if field is None or not isinstance(field.value, dict):
                continue
            if (new_id := self._new_agent(field.value.get("agentId"))) is not None:
                inner = text[field.start : field.end]
                changes[name] = edit_object(inner, fields_of(inner), {"agentId": encode_text(new_id)})
        return changes

    def _new_agent(self, value: object) -> str | None:
        return self._agent_ids.get(value) if isinstance(value, str) else None

    def _snapshot(self, text: str) -> str:
        fields = fields_of(text)
        if (field := fields.get("messageId")) is None:
            return text
        new = replace_strings(text[field.start : field.end], self._new_uuid)
        return edit_object(text, fields, {"messageId": new})

    def _new_uuid(self, value: str) -> str | None:
        """Return the uuid of a copied line; None if the value is not the uuid of a line."""
        is_line = is_id(value) and value != _NO_LINE
        return str(uuid5(self._namespace, value)) if is_line else None
