"""State lines: title, mode and other properties of a session. The last line of each type is current."""

from typing import Any, Self

from backscroll.testing.claude_code.lines import Lines

# Known types without information for the user.
OPAQUE_TYPES = (
    "atis-latch",
    "isolation-latch",
    "ended-by-model",
    "attribution-snapshot",
    "observer-ref",
    "dev-mods",
    "memory-mode",
    "history-suppression",
    "speculation-accept",
    "agent_metadata",
)


class StateLines(Lines):
    """Lines that are not linked by ``parentUuid``."""

    def state(self, type_: str, **fields: Any) -> Self:
        """Add a state line of the given type."""
        return self.line({"type": type_, **fields, "sessionId": self.session_id})

    def timestamped_state(self, type_: str, **fields: Any) -> Self:
        """Add a state line with a timestamp."""
        return self.state(type_, **fields, timestamp=self.tick())

    def flush(self) -> Self:
        """Repeat the latest state line of each type, as Claude Code does at every flush."""
        latest: dict[str, dict[str, Any]] = {}
        for record in self.records:
            if isinstance(record, dict) and "uuid" not in record and "timestamp" not in record:
                latest[record["type"]] = record
        latest.pop("file-history-snapshot", None)
        self.records += [dict(record) for record in latest.values()]
        return self

    def summary(self, text: str, leaf: str) -> Self:
        """Add a title for the session that contains the line ``leaf``, in this file or another."""
        return self.line({"type": "summary", "summary": text, "leafUuid": leaf})

    def custom_title(self, title: str) -> Self:
        return self.state("custom-title", customTitle=title)

    def ai_title(self, title: str) -> Self:
        return self.state("ai-title", aiTitle=title)

    def agent_name(self, name: str) -> Self:
        return self.state("agent-name", agentName=name)

    def agent_color(self, color: str) -> Self:
        return self.state("agent-color", agentColor=color)

    def agent_setting(self, setting: str) -> Self:
        return self.state("agent-setting", agentSetting=setting)

    def tag(self, tag: str) -> Self:
        """Add a tag. An empty tag removes the earlier one."""
        return self.state("tag", tag=tag)

    def last_prompt(self, text: str | None = None, *, leaf: str | None = None) -> Self:
        """Add the last prompt: as text, since 2.1.123 as a leaf. The leaf can be out of date."""
        fields = {"lastPrompt": text, "leafUuid": leaf}
        return self.state(
            "last-prompt", **{name: value for name, value in fields.items() if value is not None}
        )

    def mode(self, mode: str = "normal") -> Self:
        return self.state("mode", mode=mode)

    def permission_mode(self, mode: str = "plan") -> Self:
        return self.state("permission-mode", permissionMode=mode)

    def queue(self, operation: str, content: str | list[Any] | None = None, **fields: Any) -> Self:
        """Add a queue operation: ``enqueue``, ``dequeue``, ``remove`` or ``popAll``."""
        if content is not None:
            fields = {"content": content, **fields}
        return self.timestamped_state("queue-operation", operation=operation, **fields)

    def snapshot(
        self, message_id: str, files: dict[str, tuple[str | None, int]], *, update: bool = True
    ) -> Self:
        """Add a snapshot of the tracked files, each with the name and version of its backup.

        The name is None if the file did not exist.
        """
        at = self.tick()
        backups = {
            path: {"backupFileName": name, "version": version, "backupTime": at}
            for path, (name, version) in files.items()
        }
        inner = {"messageId": message_id, "trackedFileBackups": backups, "timestamp": at}
        return self.line(
            {
                "type": "file-history-snapshot",
                "messageId": message_id,
                "snapshot": inner,
                "isSnapshotUpdate": update,
            }
        )

    def delta(self, message_id: str, path: str, name: str | None, version: int, *, snapshot_id: str) -> Self:
        """Add the backup of one more file (since 2.1.208)."""
        at = self.tick()
        parent = f"{self.cwd}/{path}".rpartition("/")[0]
        backup = {"backupFileName": name, "version": version, "backupTime": at, "realParentDir": parent}
        return self.line(
            {
                "type": "file-history-delta",
                "messageId": message_id,
                "snapshotMessageId": snapshot_id,
                "trackingPath": path,
                "backup": backup,
                "timestamp": at,
            }
        )

    def pr_link(self, number: int, repository: str = "zoe/ferry") -> Self:
        url = f"https://git.example/{repository}/pull/{number}"
        return self.timestamped_state("pr-link", prNumber=number, prUrl=url, prRepository=repository)

    def relocated(self, cwd: str) -> Self:
        return self.state("relocated", relocatedCwd=cwd)

    def worktree(self, name: str | None) -> Self:
        """Add the worktree of the session. None means that the session left its worktree."""
        if name is None:
            return self.state("worktree-state", worktreeSession=None)
        session = {
            "originalCwd": self.cwd,
            "worktreePath": f"{self.cwd}-{name}",
            "worktreeName": name,
            "worktreeBranch": name,
            "originalBranch": self.branch,
            "originalHeadCommit": f"{self.random.getrandbits(160):040x}",
            "sessionId": self.session_id,
        }
        return self.state("worktree-state", worktreeSession=session)

    def bridge(self, bridge_id: str = "cse_demo", *, sequence: int = 0) -> Self:
        return self.state("bridge-session", bridgeSessionId=bridge_id, lastSequenceNum=sequence)

    def frame_link(self, path: str, title: str) -> Self:
        return self.timestamped_state(
            "frame-link", path=path, frameUrl="https://example.invalid/a/1", title=title
        )

    def cost(
        self,
        dollars: float,
        *,
        model: str | None = None,
        output_tokens: int = 900,
        started_at_ms: int = 1_791_000_000_000,
    ) -> Self:
        """Add the total cost as Claude Code computes it, including background calls.

        A fork continues the total of its original and has the same start.
        """
        usage = {
            "inputTokens": 40,
            "outputTokens": output_tokens,
            "thinkingTokens": 0,
            "cacheReadInputTokens": 60_000,
            "cacheCreationInputTokens": 2400,
            "webSearchRequests": 0,
            "costUSD": dollars,
        }
        return self.state(
            "cost-state",
            totalCostUSD=dollars,
            totalAPIDuration=41_000,
            totalAPIDurationWithoutRetries=40_500,
            totalToolDuration=9_000,
            totalDuration=61_000,
            totalLinesAdded=12,
            totalLinesRemoved=4,
            startTime=started_at_ms,
            hasUnknownModelCost=False,
            modelUsage={model or self.release.model: usage},
        )

    def tools_used(self, *tools: str) -> Self:
        """Add the tools that were called so far (since 2.1.325)."""
        return self.state("tools-used", tools=list(tools))

    def content_replacement(self, *replacements: Any) -> Self:
        return self.state("content-replacement", replacements=list(replacements))

    def fork_context(self, parent_session: str, parent_last: str, *, length: int) -> Self:
        """Add the reference to the context that a forked agent inherits."""
        agent = {} if self.agent_id is None else {"agentId": self.agent_id}
        return self.line(
            {
                "type": "fork-context-ref",
                **agent,
                "parentSessionId": parent_session,
                "parentLastUuid": parent_last,
                "contextLength": length,
            }
        )

    def continued_in(self, session_id: str) -> Self:
        return self.timestamped_state("continued-in", continuedInSessionId=session_id)

    def teleported_from(self, remote: str, *, count: int = 3) -> Self:
        return self.state("teleported-from", remoteSessionId=remote, branch=self.branch, messageCount=count)

    def opaque(self) -> Self:
        """Add one line of each type in `OPAQUE_TYPES`."""
        for type_ in OPAQUE_TYPES:
            self.state(type_, **({"atis": ""} if type_ == "atis-latch" else {}))
        return self

    def every_state(self) -> Self:
        """Add one line of every state type. A linked line must exist."""
        leaf = self.last_uuid
        self.summary("Ferry timetable DST fix", leaf)
        self.custom_title("Ferry DST").ai_title("Fix ferry DST offset")
        self.agent_name("ferry-helper").agent_color("blue").agent_setting("reviewer").tag("bugfix")
        self.last_prompt("also check the winter table", leaf=leaf).mode().permission_mode()
        self.queue("enqueue", "also check the winter table").queue("dequeue")
        self.snapshot(leaf, {"src/tz.py": ("0a1b2c3d4e5f6071@v2", 2), "new.txt": (None, 1)})
        self.delta(leaf, "src/tz.py", "0a1b2c3d4e5f6071@v3", 3, snapshot_id=leaf)
        self.pr_link(12).relocated(f"{self.cwd}-wt").worktree("dst").bridge()
        self.frame_link(f"{self.cwd}/report.html", "Report").cost(0.42).content_replacement()
        self.tools_used("Read", "Edit")
        self.teleported_from("cse_remote").continued_in(self.new_uuid())
        return self.opaque()
