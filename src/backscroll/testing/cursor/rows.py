"""Rows of a session other than its messages: index entries, composer data and sidecar rows."""

from collections.abc import Mapping, Sequence
from typing import Any

from backscroll.testing.cursor.bubbles import dumps, iso
from backscroll.testing.cursor.workspaces import Workspace

# Replaces every token and key. With a "=" appended it is valid base64. No output may contain it.
SECRET = "FAKEsecretNEVERshow"

# Known record versions of each generation. The last one is the default.
COMPOSER_VERSIONS: Mapping[int, tuple[int | None, ...]] = {
    1: (1, None),
    2: (2, 3, 6, 9, 13, 10),
    3: (14, 15, 16),
    4: (17,),
    5: (18,),
}

CONTEXT: Mapping[str, Any] = {
    "fileSelections": [],
    "folderSelections": [],
    "selections": [],
    "terminalSelections": [],
    "selectedDocs": [],
    "externalLinks": [],
    "cursorRules": [],
    "cursorCommands": [],
    "selectedCommits": [],
    "selectedPullRequests": [],
    "selectedImages": [],
    "mentions": {"fileSelections": {}, "gitDiff": [], "diffHistory": []},
}


def head(
    id: str, *, name: str | None, at: int, until: int, generation: int, workspace: Workspace | None
) -> dict[str, Any]:
    """Return the entry of a session in a session list or the session table."""
    record: dict[str, Any] = {"type": "head", "composerId": id}
    if name is not None:
        record |= {"name": name, "subtitle": "Edited cart.py"}
    record |= {
        "createdAt": at,
        "lastUpdatedAt": until,
        "unifiedMode": "agent",
        "forceMode": "edit",
        "hasUnreadMessages": False,
    }
    if generation >= 2:
        record |= {
            "contextUsagePercent": 12.4,
            "totalLinesAdded": 31,
            "totalLinesRemoved": 8,
            "filesChangedCount": 2,
            "hasBlockingPendingActions": False,
            "isArchived": False,
            "isDraft": False,
            "isWorktree": False,
            "isSpec": False,
            "isProject": False,
            "isBestOfNSubcomposer": False,
            "numSubComposers": 0,
            "referencedPlans": [],
        }
    if generation >= 3 and workspace is not None:
        record["workspaceIdentifier"] = workspace.identifier
        if workspace.uri is not None and not workspace.authority:
            branches = [{"branchName": "main"}]
            record["trackedGitRepos"] = [{"repoPath": workspace.path, "branches": branches}]
    if generation >= 5:
        record["source"] = "local"
    return record


def composer_data(
    id: str,
    *,
    name: str | None,
    at: int,
    until: int,
    generation: int,
    version: int | None,
    workspace: Workspace | None,
    headers: Sequence[Mapping[str, Any]] = (),
    conversation: Sequence[Mapping[str, Any]] = (),
    bubble_map: Mapping[str, Any] | str | None = None,
    state: str = "~",
) -> dict[str, Any]:
    """Return the value of a ``composerData:`` row in the format of a generation."""
    record: dict[str, Any] = {} if version is None else {"_v": version}
    record |= {"composerId": id, "richText": "", "text": "", "hasLoaded": True, "status": "completed"}
    if name is not None:
        record["name"] = name
    record |= {"createdAt": at, "lastUpdatedAt": until, "context": dict(CONTEXT), "codeBlockData": {}}
    if generation == 1:
        data = {"bubbleDataMap": {} if bubble_map is None else bubble_map}
        record |= {"conversation": list(conversation), "capabilities": [{"type": 15, "data": data}]}
        record |= {"originalModelLines": {}, "newlyCreatedFiles": []}
        return record
    record |= {
        "fullConversationHeadersOnly": list(headers),
        "conversationMap": {},
        "generatingBubbleIds": [],
        "unifiedMode": "agent",
        "forceMode": "edit",
        "isAgentic": True,
        "modelConfig": {"modelName": "model-x-high", "maxMode": False, "selectedModels": []},
        "contextTokensUsed": 24500,
        "contextTokenLimit": 200000,
        "contextUsagePercent": 12.25,
        "usageData": {},
        "originalFileStates": {},
        "capabilities": [],
        "todos": [],
        "subComposerIds": [],
        "isArchived": False,
        "isDraft": False,
    }
    if generation >= 3:
        record |= {
            "conversationState": state,
            "isNAL": True,
            "agentBackend": "cursor-agent",
            "blobEncryptionKey": f"{SECRET}=",
            "speculativeSummarizationEncryptionKey": f"{SECRET}=",
            "subagentComposerIds": [],
        }
        if workspace is not None:
            record["workspaceIdentifier"] = workspace.identifier
    return record


def sidecars(id: str, bubbles: Sequence[str], *, at: int, folder: str) -> list[tuple[str, str]]:
    """Return one row of every key family of a session other than messages."""
    last_bubble = bubbles[-1] if bubbles else "none"
    uri = f"file://{folder}/cart.py"
    line = {"original": {"startLineNumber": 12, "endLineNumberExclusive": 13}, "modified": ["    pass"]}
    files = [{"uri": {"fsPath": f"{folder}/cart.py", "scheme": "file"}, "originalModelDiffWrtV0": [line]}]
    layout = dumps({"rootPath": folder, "content": "shop/\n  cart.py"})
    return [
        (
            f"checkpointId:{id}:ck-{last_bubble}",
            dumps(
                {
                    "files": files,
                    "nonExistentFiles": [],
                    "newlyCreatedFolders": [],
                    "activeInlineDiffs": [],
                    "inlineDiffNewlyCreatedResources": {"files": [], "folders": []},
                }
            ),
        ),
        (
            f"codeBlockDiff:{id}:diff-{last_bubble}",
            dumps({"newModelDiffWrtV0": [line], "originalModelDiffWrtV0": []}),
        ),
        (
            f"codeBlockPartialInlineDiffFates:{id}:fate-{last_bubble}",
            dumps({"fates": ["accepted", "rejected"]}),
        ),
        (
            f"messageRequestContext:{id}:{last_bubble}",
            dumps(
                {
                    "projectLayouts": [layout],
                    "cursorRules": [],
                    "terminalFiles": [],
                    "gitStatusRaw": "## main",
                    "todos": [],
                    "summarizedComposers": [],
                    "multiFileLinterErrors": [],
                    "attachedFoldersListDirResults": [],
                }
            ),
        ),
        (f"ofsContent:{id}:{uri}", "def basket():\n    return total\n"),
        (f"composerVirtualRowHeights:{id}", dumps({"heights": {last_bubble: 48}, "at": iso(at)})),
        (f"composerVirtualRowHeights:{id}:_recentIds", dumps([last_bubble])),
        (f"composerDraft:{id}", dumps({"text": "not sent yet"})),
        (f"inlineDiff:{id}:{last_bubble}", dumps({"uri": uri, "lines": []})),
        (f"localAgentMailboxCursor:{id}", "0"),
    ]


def secrets() -> list[tuple[str, str]]:
    """Return rows of the global ``ItemTable`` with secrets that no output may contain."""
    return [
        ("cursorAuth/accessToken", SECRET),
        ("cursorAuth/refreshToken", SECRET),
        ("cursorAuth/cachedEmail", f"{SECRET}@example.invalid"),
        ('secret://{"extensionId":"example.mail","key":"token"}', dumps({"type": "Buffer", "data": SECRET})),
        ("mcpOAuth.tracker", dumps({"access_token": SECRET})),
    ]
