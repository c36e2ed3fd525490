"""One example chat per known state of a store."""

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


def example_messages() -> list[Message]:
    """Return a conversation with thinking, results of every type and a failed call."""
    return [
        user("rename foo"),
        thinking("Where is foo?"),
        tool("Grep", {"pattern": "foo", "path": "/home/dev/shop"}, "cart.py:12: foo()"),
        tool("Read", {"path": "/home/dev/shop/cart.py"}, {"content": "def foo(): ...", "totalLines": 1}),
        thinking("One place only.", encoding="text"),
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
    messages = [
        user("explore"),
        tool("Task", {"prompt": "look around"}, "Nothing here."),
        assistant("Nothing."),
    ]
    return home.chat(messages, name="Subagents", subagents={"explore-1": child}, subagent_field=field)


def _subagent_store(home: Home) -> Chat:
    """Write a chat and a subagent with its own store, whose metadata contains the parent. Return the chat."""
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
    messages = [user("count"), assistant("There are two.")]
    home.chat(messages, name="Child", has_meta_json=False, fields={"subagentInfo": info})
    return parent


# Functions that write a chat into a home.
STORES: Mapping[str, Callable[[Home], Chat]] = MappingProxyType(
    {
        "plain": lambda home: home.chat(example_messages()),
        "metadata as JSON": lambda home: home.chat(example_messages(), meta="plain"),
        "metadata in rows": lambda home: home.chat(example_messages(), meta="rows"),
        "metadata of odd length": lambda home: home.chat(example_messages(), meta="odd"),
        "createdAt as text": lambda home: home.chat(example_messages(), fields={"createdAt": str(START)}),
        "createdAt zero": lambda home: home.chat(example_messages(), fields={"createdAt": 0}, is_timed=False),
        "no meta.json": lambda home: home.chat(example_messages(), has_meta_json=False),
        "no store yet": lambda home: home.chat(has_store=False),
        "no messages": lambda home: home.chat(),
        "acp": lambda home: home.chat(example_messages(), is_acp=True),
        "turns of 2025": lambda home: home.chat(example_messages(), turn_shape="old", is_timed=False),
        "no turns": lambda home: home.chat(example_messages(), turn_shape="none"),
        "only turns": lambda home: home.chat(example_messages(), has_prompts=False),
        "only old turns": lambda home: home.chat(example_messages(), has_prompts=False, turn_shape="old"),
        "inline messages": lambda home: home.chat(example_messages(), is_inline=True),
        "calls outside the content": lambda home: home.chat(example_messages(), style="openai"),
        "text in a separate blob": lambda home: home.chat(example_messages(), has_separate_text=True),
        "compacted": lambda home: home.chat(example_messages(), compacted=5),
        "compacted with the old field": lambda home: home.chat(
            example_messages(), compacted=5, archive_field=11
        ),
        "pending call": lambda home: home.chat(
            [user("run it")], pending=tool("Shell", {"command": "make"}, call_id="call_pending")
        ),
        "subagents": lambda home: _subagents(home, 16),
        "subagents by id": lambda home: _subagents(home, 31),
        "subagent with its own store": _subagent_store,
        "repeated messages": lambda home: home.chat([user("go on"), assistant("Done.")] * 3),
        "image": lambda home: home.chat([image(), assistant("A chart.")]),
        "unknown fields": lambda home: home.chat(example_messages(), has_unknown_fields=True),
        "empty root": lambda home: home.chat(example_messages(), pointer="empty"),
        "dangling root": lambda home: home.chat(example_messages(), pointer="dangling"),
        "no root field": lambda home: home.chat(example_messages(), pointer="missing"),
        "everything in the log": lambda home: home.chat(example_messages(), rows_in="wal-only"),
        "newest in the log": lambda home: home.chat(example_messages(), rows_in="wal"),
    }
)


def write_all_stores(home: Home) -> dict[str, Chat]:
    """Write one chat per state. Return the chats by state."""
    return {name: write(home) for name, write in STORES.items()}
