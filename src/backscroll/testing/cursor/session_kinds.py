"""Sessions that are not what they seem: drafts, ghosts, subagents, leftovers.

Each function adds one such session to a home and returns its id.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from backscroll.testing.cursor.bubbles import dumps
from backscroll.testing.cursor.graph import build_graph
from backscroll.testing.cursor.messages import assistant, missing, orphaned, tool, user
from backscroll.testing.cursor.session_lists import Entry
from backscroll.testing.cursor.user_data import STARTS, Composer, Home
from backscroll.testing.cursor.workspaces import Place, empty_window, local

__all__ = [
    "KINDS",
    "archived",
    "best_of_n",
    "both_lists",
    "circle",
    "cloud",
    "draft",
    "emptied",
    "ghost",
    "hex_blobs",
    "keyless",
    "orphan_bubbles",
    "placeholder",
    "rich_only",
    "subagent",
    "task",
    "tombstone",
    "unlisted",
    "windowless",
    "with_gaps",
    "worktree",
]


def draft(home: Home) -> str:
    """A session in which nothing was ever sent; the words stand in its input box."""
    return home.composer(
        name=None, head={"isDraft": True}, data={"isDraft": True, "text": "half a thought", "status": "none"}
    ).id


def placeholder(home: Home) -> str:
    """The empty slot that Cursor keeps for the next session of a window without a folder."""
    place = Place("empty-window")
    return home.composer(id="empty-state-draft", name=None, workspace=place, head={"isDraft": True}).id


def tombstone(home: Home) -> str:
    """What Cursor keeps of a deleted session since the header table: an archived head without a name."""
    return _head_only(home, "dead0000-0000-4000-8000-000000000001", name=None, isArchived=True, isDraft=False)


def ghost(home: Home) -> str:
    """A session that the index names while nothing of it is left."""
    return _head_only(home, "9057e000-0000-4000-8000-000000000002", name="Gone without a trace")


def archived(home: Home) -> str:
    """A real session that was put away."""
    return home.composer(_talk("put away"), name="Put away", head={"isArchived": True}).id


def unlisted(home: Home) -> str:
    """A session that no index names."""
    return home.composer(_talk("unlisted"), name="In no list", is_listed=False).id


def orphan_bubbles(home: Home) -> str:
    """Messages whose session has neither a head nor data any more."""
    return home.composer(_talk("left behind"), is_listed=False, has_data=False, has_graph=False).id


def with_gaps(home: Home) -> str:
    """A session with a message whose row is gone, and a row that a rewind left unnamed."""
    said = [
        user("first words"),
        missing(assistant("lost words"), preview="lost wor"),
        orphaned(assistant("words rewound")),
        assistant("last words"),
    ]
    return home.composer(said, name="With gaps", has_graph=False).id


def emptied(home: Home) -> str:
    """A deleted session as versions before the tombstone left it: keys whose values are NULL."""
    made = home.composer(_talk("emptied"), name="Emptied", has_data=False, has_graph=False)
    home.put(made.key, None)
    home.put(made.bubble_key(1), None)
    return made.id


def keyless(home: Home) -> str:
    """A row that has no key at all, beside a session that is whole."""
    home.put(None, '{"_v":3,"type":1,"text":"nobody knows whose"}')
    return home.composer(_talk("keyless"), name="Beside a row without a key").id


def subagent(home: Home) -> str:
    """A session that another one started, linked from both sides. Returns the parent's id."""
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
    """An old subagent, linked to its parent only by the call id in its own. Returns the parent's id."""
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
    """Three attempts at one prompt; the losers stay in the database. Returns the parent's id."""
    ids = [f"be570000-0000-4000-8000-00000000000{n}" for n in range(3)]
    parent = home.composer(
        [user("Try it three times"), assistant("The second one won.")],
        name="Best of three",
        head={"numSubComposers": 3},
        data={"subComposerIds": ids, "isBestOfNParent": True},
    )
    for place, id in enumerate(ids):
        home.composer(
            _talk(f"attempt {place}"),
            id=id,
            name=f"Attempt {place}",
            head={"isBestOfNSubcomposer": True},
            data={"isBestOfNSubcomposer": True, "bestOfNJudgeWinner": place == 1},
        )
    return parent.id


def cloud(home: Home) -> str:
    """The mirror of a session in the cloud, whose words were never on this machine."""
    id = "bc-c10d0000-0000-4000-8000-000000000005"
    fields = {"createdFromBackgroundAgent": {"bcId": id}}
    home.put(f"{id}:status", '"FINISHED"')
    home.put("cloudAgent:metadata", "{}")
    return home.composer(id=id, name="In the cloud", head=fields, data=fields).id


def worktree(home: Home) -> str:
    """A session that worked in a git worktree of its own."""
    path = "/home/dev/.cursor/worktrees/shop/ab12"
    tree = {"worktreePath": path, "commitHash": "0" * 40, "branchName": "shop-ab12"}
    return home.composer(
        _talk("in a worktree"),
        workspace=local(path),
        name="In a worktree",
        head={"isWorktree": True},
        data={"gitWorktree": tree, "isWorktree": True},
    ).id


def windowless(home: Home) -> str:
    """A session in a window that had no folder open."""
    return home.composer(_talk("no folder"), workspace=empty_window(), name="No folder").id


def rich_only(home: Home) -> str:
    """A prompt whose words are only in the editor's own document, once as text and once as an object."""
    doc = {
        "type": "doc",
        "content": [{"type": "paragraph", "content": [{"type": "text", "text": "rich words"}]}],
    }
    said = [
        user("", richText=dumps(doc)),
        assistant("Read."),
        user("", richText=doc),
        assistant("Read again."),
    ]
    return home.composer(said, name="Rich text only", has_graph=False).id


def both_lists(home: Home) -> str:
    """A session with a list of messages and an inline conversation; the list's second row is gone."""
    said = [user("in both"), missing(assistant("only inline"))]
    made = home.composer(said, name="Both lists", has_graph=False)
    inline = [
        {"type": 1, "bubbleId": made.messages[0].id, "text": "in both"},
        {"type": 2, "bubbleId": made.messages[1].id, "text": "only inline"},
    ]
    home.put(made.key, dumps({**made.data, "conversation": inline}))
    return made.id


def circle(home: Home) -> str:
    """Two sessions, each of which says that the other started it."""
    ids = ["c14c0000-0000-4000-8000-000000000006", "c14c0000-0000-4000-8000-000000000007"]
    for id, other in zip(ids, reversed(ids), strict=True):
        info = {
            "parentComposerId": other,
            "subagentTypeName": "explore",
            "subagentType": 3,
            "toolCallId": "none",
        }
        home.composer(
            _talk(f"in a circle {id}"),
            id=id,
            name="Circle",
            head={"subagentInfo": info},
            data={"subagentInfo": info},
        )
    return ids[0]


def hex_blobs(home: Home) -> str:
    """A session that is only a graph, whose blobs are stored as hex text."""
    said = [user("stored as hex"), assistant("All of it.")]
    graph = build_graph(said, [STARTS[home.generation], STARTS[home.generation] + 9000])
    for id, blob in graph.blobs.items():
        home.put(f"agentKv:blob:{id}", blob.hex())
    return home.composer(name="Hex blobs", has_graph=False, data={"conversationState": graph.state}).id


KINDS: Mapping[str, Callable[[Home], str]] = MappingProxyType(
    {
        made.__name__: made
        for made in (
            archived,
            best_of_n,
            both_lists,
            circle,
            cloud,
            draft,
            emptied,
            ghost,
            hex_blobs,
            keyless,
            orphan_bubbles,
            placeholder,
            rich_only,
            subagent,
            task,
            tombstone,
            unlisted,
            windowless,
            with_gaps,
            worktree,
        )
    }
)


def _talk(word: str) -> list[Any]:
    return [user(f"Say something {word}"), assistant(f"Something {word}.")]


def _call_id(made: Composer, position: int) -> str:
    call = made.messages[position].tool
    return str(call.call_id) if call is not None else ""


def _head_only(home: Home, id: str, *, name: str | None, **fields: Any) -> str:
    at = STARTS[home.generation]
    home.list_head(Entry(id, home.generation, local("/home/dev/shop"), name, at, at, fields))
    return id
