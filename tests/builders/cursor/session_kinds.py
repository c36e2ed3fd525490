"""Special sessions: drafts, ghosts, subagents, remains of deleted sessions.

Each function adds one such session to a home and returns its id.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from backscroll.testing.cursor.bubbles import dumps
from backscroll.testing.cursor.graph import build_graph
from backscroll.testing.cursor.messages import assistant, missing, orphaned, tool, user
from backscroll.testing.cursor.session_lists import Entry
from backscroll.testing.cursor.user_data import START_TIMES, Composer, Home
from backscroll.testing.cursor.workspaces import Workspace, empty_window, local_folder


def draft(home: Home) -> str:
    """Add a session without messages and with unsent text."""
    return home.composer(
        name=None, head={"isDraft": True}, data={"isDraft": True, "text": "half a thought", "status": "none"}
    ).id


def placeholder(home: Home) -> str:
    """Add the empty session that Cursor prepares for a window without a folder."""
    workspace = Workspace("empty-window")
    return home.composer(id="empty-state-draft", name=None, workspace=workspace, head={"isDraft": True}).id


def tombstone(home: Home) -> str:
    """Add the entry that Cursor keeps for a deleted session (since generation 4): archived and unnamed."""
    return _add_entry(home, "dead0000-0000-4000-8000-000000000001", name=None, isArchived=True, isDraft=False)


def ghost(home: Home) -> str:
    """Add a session that has an index entry but no content."""
    return _add_entry(home, "9057e000-0000-4000-8000-000000000002", name="Gone without a trace")


def archived(home: Home) -> str:
    """Add an archived session."""
    return home.composer(_short_conversation("put away"), name="Put away", head={"isArchived": True}).id


def unlisted(home: Home) -> str:
    """Add a session without an index entry."""
    return home.composer(_short_conversation("unlisted"), name="In no list", is_listed=False).id


def orphan_bubbles(home: Home) -> str:
    """Add messages whose session has neither an index entry nor composer data."""
    return home.composer(
        _short_conversation("left behind"), is_listed=False, has_data=False, has_graph=False
    ).id


def with_gaps(home: Home) -> str:
    """Add a session with a message without a row and a row without a list entry."""
    messages = [
        user("first words"),
        missing(assistant("lost words"), preview="lost wor"),
        orphaned(assistant("words rewound")),
        assistant("last words"),
    ]
    return home.composer(messages, name="With gaps", has_graph=False).id


def emptied(home: Home) -> str:
    """Add a session whose values are NULL, as versions before generation 4 deleted sessions."""
    composer = home.composer(_short_conversation("emptied"), name="Emptied", has_data=False, has_graph=False)
    home.put(composer.key, None)
    home.put(composer.bubble_key(1), None)
    return composer.id


def with_keyless_row(home: Home) -> str:
    """Add a row without a key, and a complete session."""
    home.put(None, '{"_v":3,"type":1,"text":"text without an owner"}')
    return home.composer(_short_conversation("keyless"), name="Beside a row without a key").id


def subagent(home: Home) -> str:
    """Add a session and its subagent, with links in both directions. Return the id of the parent."""
    call = tool(
        "task_v2", {"description": "Explore rounding", "prompt": "Where is it rounded?"}, {"ok": True}
    )
    parent_id, child_id = "9a5e0000-0000-4000-8000-000000000003", "c41d0000-0000-4000-8000-000000000004"
    parent = home.composer(
        [user("Explore first"), call, assistant("It is rounded twice.")],
        id=parent_id,
        name="Parent",
        data={"subagentComposerIds": [child_id]},
    )
    info = {
        "parentComposerId": parent_id,
        "subagentTypeName": "explore",
        "subagentType": 3,
        "toolCallId": _call_id(parent, 1),
    }
    home.composer(
        [user("Where is it rounded?"), assistant("In cart.py, twice.")],
        id=child_id,
        name="Explore rounding",
        head={"subagentInfo": info},
        data={"subagentInfo": info},
    )
    return parent_id


def task(home: Home) -> str:
    """Add a session and an old subagent, whose id contains the call id. Return the id of the parent."""
    parent = home.composer(
        [
            user("Delegate it"),
            tool("task", {"prompt": "Count the roundings"}, {"ok": True}),
            assistant("Two."),
        ],
        name="Parent of a task",
    )
    home.composer(
        [user("Count the roundings"), assistant("There are two.")],
        id=f"task-{_call_id(parent, 1)}",
        name=None,
        is_listed=False,
        data={"subagentInfo": None},
    )
    return parent.id


def best_of_n(home: Home) -> str:
    """Add a session with three attempts at one prompt. Return the id of the parent."""
    ids = [f"be570000-0000-4000-8000-00000000000{n}" for n in range(3)]
    parent = home.composer(
        [user("Try it three times"), assistant("The second one won.")],
        name="Best of three",
        head={"numSubComposers": 3},
        data={"subComposerIds": ids, "isBestOfNParent": True},
    )
    for index, id in enumerate(ids):
        home.composer(
            _short_conversation(f"attempt {index}"),
            id=id,
            name=f"Attempt {index}",
            head={"isBestOfNSubcomposer": True},
            data={"isBestOfNSubcomposer": True, "bestOfNJudgeWinner": index == 1},
        )
    return parent.id


def cloud(home: Home) -> str:
    """Add the entry of a session in the cloud, which has no local messages."""
    id = "bc-c10d0000-0000-4000-8000-000000000005"
    fields = {"createdFromBackgroundAgent": {"bcId": id}}
    home.put(f"{id}:status", '"FINISHED"')
    home.put("cloudAgent:metadata", "{}")
    return home.composer(id=id, name="In the cloud", head=fields, data=fields).id


def worktree(home: Home) -> str:
    """Add a session in a git worktree."""
    path = "/home/dev/.cursor/worktrees/shop/ab12"
    tree = {"worktreePath": path, "commitHash": "0" * 40, "branchName": "shop-ab12"}
    return home.composer(
        _short_conversation("in a worktree"),
        workspace=local_folder(path),
        name="In a worktree",
        head={"isWorktree": True},
        data={"gitWorktree": tree, "isWorktree": True},
    ).id


def without_folder(home: Home) -> str:
    """Add a session in a window without a folder."""
    return home.composer(_short_conversation("no folder"), workspace=empty_window(), name="No folder").id


def rich_text_only(home: Home) -> str:
    """Add a session whose prompts have only rich text, as JSON text and as an object."""
    doc = {
        "type": "doc",
        "content": [{"type": "paragraph", "content": [{"type": "text", "text": "rich words"}]}],
    }
    messages = [
        user("", richText=dumps(doc)),
        assistant("Read."),
        user("", richText=doc),
        assistant("Read again."),
    ]
    return home.composer(messages, name="Rich text only", has_graph=False).id


def both_lists(home: Home) -> str:
    """Add a session with a message list and an inline conversation. One message is only inline."""
    messages = [user("in both"), missing(assistant("only inline"))]
    composer = home.composer(messages, name="Both lists", has_graph=False)
    inline = [
        {"type": 1, "bubbleId": composer.messages[0].id, "text": "in both"},
        {"type": 2, "bubbleId": composer.messages[1].id, "text": "only inline"},
    ]
    home.put(composer.key, dumps({**composer.data, "conversation": inline}))
    return composer.id


def parent_cycle(home: Home) -> str:
    """Add two sessions, each with the other as its parent."""
    ids = ["c14c0000-0000-4000-8000-000000000006", "c14c0000-0000-4000-8000-000000000007"]
    for id, other in zip(ids, reversed(ids), strict=True):
        info = {
            "parentComposerId": other,
            "subagentTypeName": "explore",
            "subagentType": 3,
            "toolCallId": "none",
        }
        home.composer(
            _short_conversation(f"in a circle {id}"),
            id=id,
            name="Circle",
            head={"subagentInfo": info},
            data={"subagentInfo": info},
        )
    return ids[0]


def hex_blobs(home: Home) -> str:
    """Add a session that is only a graph, with blobs as hex text."""
    messages = [user("stored as hex"), assistant("All of it.")]
    graph = build_graph(messages, [START_TIMES[home.generation], START_TIMES[home.generation] + 9000])
    for id, blob in graph.blobs.items():
        home.put(f"agentKv:blob:{id}", blob.hex())
    return home.composer(name="Hex blobs", has_graph=False, data={"conversationState": graph.state}).id


KINDS: Mapping[str, Callable[[Home], str]] = MappingProxyType(
    {
        add.__name__: add
        for add in (
            archived,
            best_of_n,
            both_lists,
            parent_cycle,
            cloud,
            draft,
            emptied,
            ghost,
            hex_blobs,
            with_keyless_row,
            orphan_bubbles,
            placeholder,
            rich_text_only,
            subagent,
            task,
            tombstone,
            unlisted,
            without_folder,
            with_gaps,
            worktree,
        )
    }
)


def _short_conversation(word: str) -> list[Any]:
    return [user(f"Say something {word}"), assistant(f"Something {word}.")]


def _call_id(composer: Composer, position: int) -> str:
    call = composer.messages[position].tool
    return str(call.call_id) if call is not None else ""


def _add_entry(home: Home, id: str, *, name: str | None, **fields: Any) -> str:
    at = START_TIMES[home.generation]
    home.list_head(Entry(id, home.generation, local_folder("/home/dev/shop"), name, at, at, fields))
    return id
