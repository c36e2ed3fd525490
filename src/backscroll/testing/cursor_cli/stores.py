"""Every state a chat's store has been found in, by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from backscroll.testing.cursor.graph import build_graph
from backscroll.testing.cursor.messages import (
    Message,
    assistant,
    failed,
    image,
    simulated,
    thinking,
    tool,
    user,
)
from backscroll.testing.cursor_cli.home import START, Chat, Home

__all__ = ["STORES", "talk", "write_every_store"]


def talk() -> list[Message]:
    """Two turns with everything the command line writes: thinking, results of every shape, a failure."""
    return [
        user("rename foo"),
        thinking("Where is foo?"),
        tool("Grep", {"pattern": "foo", "path": "/home/dev/shop"}, "cart.py:12: foo()"),
        tool("Read", {"path": "/home/dev/shop/cart.py"}, {"content": "def foo(): ...", "totalLines": 1}),
        thinking("One place only.", spelling="text"),
        tool(
            "StrReplace",
            {"path": "cart.py", "old": "foo", "new": "bar"},
            [{"type": "text", "text": "Edited."}],
        ),
        failed("Shell", {"command": "pytest -q"}, "pytest: command not found"),
        assistant("Done."),
        simulated("A background task has finished."),
        user("and the tests?"),
        tool(
            "TodoWrite", {"todos": [{"content": "tests", "status": "pending"}]}, fields={"output": "Written."}
        ),
        assistant("Renamed there too."),
    ]


def _subagents(home: Home, field: int) -> Chat:
    child = build_graph([user("look around"), assistant("Nothing here.")], [START, START + 9000])
    said = [user("explore"), tool("Task", {"prompt": "look around"}, "Nothing here."), assistant("Nothing.")]
    return home.chat(said, name="Subagents", subagents={"explore-1": child}, subagent_field=field)


def _child(home: Home) -> Chat:
    """A subagent with a store of its own, which names its parent in the metadata and has no ``meta.json``."""
    parent = home.chat(
        [user("delegate"), tool("Task", {"prompt": "count"}, "Two."), assistant("Two.")], name="Parent"
    )
    call = parent.messages[1].tool
    info = {
        "parentAgentId": parent.id,
        "rootParentAgentId": parent.id,
        "toolCallId": "" if call is None else call.call_id,
        "typeName": "explore",
    }
    said = [user("count"), assistant("There are two.")]
    home.chat(said, name="Child", has_meta_json=False, fields={"subagentInfo": info})
    return parent


# Each writes a chat into the home.
STORES: Mapping[str, Callable[[Home], Chat]] = MappingProxyType(
    {
        "plain": lambda home: home.chat(talk()),
        "metadata as JSON": lambda home: home.chat(talk(), meta="plain"),
        "metadata in rows": lambda home: home.chat(talk(), meta="rows"),
        "metadata of odd length": lambda home: home.chat(talk(), meta="odd"),
        "created at a text": lambda home: home.chat(talk(), fields={"createdAt": str(START)}),
        "created at nothing": lambda home: home.chat(talk(), fields={"createdAt": 0}, is_timed=False),
        "no meta.json": lambda home: home.chat(talk(), has_meta_json=False),
        "no store yet": lambda home: home.chat(has_store=False),
        "nothing said": lambda home: home.chat(),
        "acp": lambda home: home.chat(talk(), is_acp=True),
        "turns of 2025": lambda home: home.chat(talk(), turn_shape="old", is_timed=False),
        "no turns": lambda home: home.chat(talk(), turn_shape="none"),
        "only turns": lambda home: home.chat(talk(), has_prompts=False),
        "only old turns": lambda home: home.chat(talk(), has_prompts=False, turn_shape="old"),
        "inline messages": lambda home: home.chat(talk(), is_inline=True),
        "calls beside the content": lambda home: home.chat(talk(), style="openai"),
        "text apart": lambda home: home.chat(talk(), keeps_text_apart=True),
        "compacted": lambda home: home.chat(talk(), compacted=5),
        "compacted the old way": lambda home: home.chat(talk(), compacted=5, archive_field=11),
        "pending call": lambda home: home.chat(
            [user("run it")], pending=tool("Shell", {"command": "make"}, call_id="call_pending")
        ),
        "subagents": lambda home: _subagents(home, 16),
        "subagents by id": lambda home: _subagents(home, 31),
        "a child's own store": _child,
        "repeated messages": lambda home: home.chat([user("go on"), assistant("Done.")] * 3),
        "a picture": lambda home: home.chat([image(), assistant("A chart.")]),
        "unknown fields": lambda home: home.chat(talk(), has_unknown_fields=True),
        "empty root": lambda home: home.chat(talk(), pointer="empty"),
        "dangling root": lambda home: home.chat(talk(), pointer="dangling"),
        "no root named": lambda home: home.chat(talk(), pointer="missing"),
        "everything in the log": lambda home: home.chat(talk(), rows_in="wal-only"),
        "newest in the log": lambda home: home.chat(talk(), rows_in="wal"),
    }
)


def write_every_store(home: Home) -> dict[str, Chat]:
    """One chat in every state, by the name of the state."""
    return {name: write(home) for name, write in STORES.items()}
