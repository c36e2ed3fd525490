"""One example history per generation, with every kind of content of that generation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from backscroll.testing.cursor import side_databases
from backscroll.testing.cursor.bubbles import dumps
from backscroll.testing.cursor.messages import (
    Message,
    Tool,
    assistant,
    cancelled,
    empty,
    failed,
    image,
    loading,
    rejected,
    simulated,
    thinking,
    tool,
    user,
    with_empty_tool_data,
)
from backscroll.testing.cursor.rows import COMPOSER_VERSIONS
from backscroll.testing.cursor.tool_calls import TOOL_NAMES, example_call
from backscroll.testing.cursor.user_data import CHAT_DATA, Home
from backscroll.testing.cursor.workspaces import (
    DOCS,
    SHOP,
    container_folder,
    empty_window,
    multi_root,
    ssh_folder,
    windows_folder,
    wsl_folder,
)
from backscroll.testing.database import Journal, RowLocation
from tests.builders.cursor import session_kinds


def all_message_kinds() -> list[Message]:
    """Return a conversation with a message of every kind."""
    return [
        user("Totals are off", files=["/home/dev/shop/cart.py"]),
        thinking("Check rounding first."),
        thinking("A thought kept as bare text.", encoding="text"),
        thinking("A thought kept as JSON text.", encoding="json"),
        Message("assistant", tool=example_call("run_terminal_command_v2")),
        Message("assistant", tool=replace(example_call("grep"), encoding="object")),
        Message("assistant", tool=replace(example_call("read_file_v2"), encoding="double")),
        tool("reapply", {"target": "cart.py"}, "not JSON: applied"),
        failed("search_replace", {"file_path": "cart.py"}, "The string to replace was not found."),
        failed("web_fetch", {"url": "https://example.invalid"}, "No such host", encoding="object"),
        cancelled("codebase_search", {"query": "rounding"}),
        rejected("rm -rf build", "/home/dev/shop"),
        loading("web_search", {"query": "banker's rounding"}),
        Message("assistant", "Text and thought and tool at once.", "All three.", example_call("list_dir")),
        empty(),
        image(),
        simulated("The background task has finished."),
        assistant(
            "Rounding now happens once.", codeBlocks=[{"content": "round(x, 2)", "languageId": "python"}]
        ),
    ]


def all_tool_calls() -> list[Message]:
    """Return a conversation with a call of every tool."""
    return [user("Use them all"), *(Message("assistant", tool=example_call(name)) for name in TOOL_NAMES)]


def _g0(home: Home) -> None:
    messages = [user("match dates?"), assistant("Use a group for each part.")]
    home.tab(messages, workspace=SHOP, name="Regex help")
    home.tab(
        [
            user(
                "", initText=dumps({"root": {"children": [{"children": [{"text": "typed in the editor"}]}]}})
            ),
            Message("assistant", fields={"rawText": "", "text": "answer in text"}),
            user("", delegate={"a": "said through a delegate"}),
            assistant("answer with a picture", image={"path": "/tmp/plot.png"}),
            user("about this", selections=[{"text": "def basket(): ..."}]),
        ],
        workspace=SHOP,
        name="Odd spellings",
    )
    home.tab(messages, workspace=DOCS, id="shared-tab", name="Other names", variant=True)
    home.tab([user("same id, other workspace"), assistant("Yes.")], workspace=SHOP, id="shared-tab")
    # Some installations have a chat panel in the global database too.
    global_tab = {"tabId": "global-tab", "chatTitle": "Global", "lastSendTime": 1717000500000}
    global_bubbles = [{"type": "user", "id": "g1", "text": "asked without a workspace"}]
    home.put_item(CHAT_DATA, dumps({"tabs": [global_tab | {"bubbles": global_bubbles}]}))
    home.put_item("aiService.prompts", dumps([{"text": "match dates?", "commandType": 4}]), workspace=SHOP)
    generation = {
        "unixMs": 1717000000000,
        "generationUUID": "gen-1",
        "type": "cmdk",
        "textDescription": "date",
    }
    home.put_item("aiService.generations", dumps([generation]), workspace=SHOP)


def _g1(home: Home) -> None:
    home.add_workspace(DOCS, is_bare_list=True)
    messages = [
        user("Round once"),
        assistant("Done."),
        Message("assistant", tool=example_call("edit_file")),
        user("Thanks"),
    ]
    home.composer(messages, workspace=SHOP, name="Inline")
    home.composer(messages, workspace=SHOP, name="Tools as text", is_map_text=True, version=1)
    home.composer(messages, workspace=SHOP, name="Inside the workspace", is_in_workspace=True)
    home.composer(messages, workspace=DOCS, name="In a bare list", is_in_workspace=True)
    home.composer(all_message_kinds(), workspace=DOCS, name="Every kind")


def _g2(home: Home) -> None:
    token_count = {"inputTokens": 1200, "outputTokens": 340}
    messages = [
        with_empty_tool_data(user("Round once")),
        with_empty_tool_data(assistant("Done.", tokenCount=token_count, modelInfo={"modelName": "model-y"})),
    ]
    for version in COMPOSER_VERSIONS[2]:
        home.composer(
            messages, workspace=SHOP, name=f"Version {version}", version=version, has_sidecars=version == 9
        )
    home.composer(all_message_kinds(), workspace=SHOP, name="Every kind", bubble_version=3)
    home.composer(all_tool_calls(), workspace=DOCS, name="Every tool", bubble_version=3)
    home.composer(
        messages,
        workspace=multi_root("/home/dev/all.code-workspace"),
        name="Several roots",
        data={"usageData": {"model-y": {"costInCents": 4, "amount": 1}}, "createdOnBranch": "main"},
    )
    summary = {"summary": "Rounding was discussed.", "lastBubbleId": "none"}
    home.composer(messages, workspace=DOCS, name="Summarised", data={"latestConversationSummary": summary})
    _add_kinds(home)


def _g3(home: Home) -> None:
    home.composer(_short_conversation(), workspace=SHOP, generation=1, name="From the first composers")
    home.composer(_short_conversation(), workspace=SHOP, generation=2, name="From before the global index")
    for version in COMPOSER_VERSIONS[3]:
        home.composer(_short_conversation(), workspace=SHOP, name=f"Version {version}", version=version)
    home.composer(all_message_kinds(), workspace=SHOP, name="Every kind", has_sidecars=True)
    home.composer(_short_conversation(), workspace=SHOP, name="Only the graph", has_bubbles=False)
    _add_kinds(home)
    home.put_secrets()


def _g4(home: Home) -> None:
    for generation in (1, 2, 3, 4):
        home.composer(
            _short_conversation(), workspace=SHOP, generation=generation, name=f"Generation {generation}"
        )
    home.composer(all_message_kinds(), workspace=SHOP, name="Every kind", has_sidecars=True)
    home.composer(_short_conversation(), workspace=ssh_folder("build.example", "/srv/shop"), name="By ssh")
    home.composer(_short_conversation(), workspace=wsl_folder("Ubuntu", "/home/dev/shop"), name="In WSL")
    home.composer(
        _short_conversation(), workspace=container_folder("7b7d", "/workspaces/shop"), name="In a container"
    )
    home.composer(
        _short_conversation(), workspace=multi_root("/home/dev/all.code-workspace"), name="Several roots"
    )
    home.composer(_short_conversation(), workspace=windows_folder(r"C:\Users\dev\shop"), name="On Windows")
    home.composer(_short_conversation(), workspace=empty_window(), name="Empty window")
    _add_kinds(home)
    home.put_secrets()


def _g5(home: Home) -> None:
    for generation in (1, 2, 3, 4, 5):
        home.composer(
            _short_conversation(), workspace=SHOP, generation=generation, name=f"Generation {generation}"
        )
    composer = home.composer(all_message_kinds(), workspace=SHOP, name="Every kind", has_sidecars=True)
    home.composer(all_tool_calls(), workspace=SHOP, name="Every tool")
    _add_kinds(home)
    home.put_secrets()
    home.put("composer.content." + "ab" * 32, "def basket():\n    return total\n")
    home.put("inlineDiffsData", "{}")
    home.put_item("glass.localAgentProjectMembership.v1", dumps({composer.id: "project-1"}))
    stats = {"date": "2026-09-21", "tabSuggestedLines": 10, "tabAcceptedLines": 4}
    home.put_item("aiCodeTracking.dailyStats.v1.5.2026-09-21", dumps(stats))
    side_databases.write_search(home.root, [(composer.id, "Every kind", "Totals are off")])
    side_databases.write_image(home.root, SHOP)


def _add_kinds(home: Home) -> None:
    unsupported = {"tombstone", "cloud"} if home.generation < 4 else set[str]()
    if home.generation < 3:
        unsupported |= {"hex_blobs", "subagent", "parent_cycle"}
    for name, add in session_kinds.KINDS.items():
        if name not in unsupported:
            add(home)


def _short_conversation() -> list[Message]:
    call = Tool("run_terminal_cmd", {"command": "pytest -q"}, {"output": "3 passed"}, has_raw_args=False)
    return [
        user("Totals are off"),
        thinking("Check rounding first."),
        Message("assistant", tool=call),
        assistant("Rounding now happens once."),
    ]


@dataclass(frozen=True)
class Example:
    """Example history of one generation."""

    generation: int
    fill: Callable[[Home], None]

    def write(
        self,
        root: Path,
        *,
        seed: int = 0,
        journal: Journal = "wal",
        rows_in: RowLocation = "main",
        shm: bool = False,
        is_upgraded: bool = False,
    ) -> Home:
        """Write the history into a user-data folder. More sessions can be added to the result."""
        home = Home(
            root,
            generation=self.generation,
            seed=seed,
            journal=journal,
            rows_in=rows_in,
            shm=shm,
            is_upgraded=is_upgraded,
        )
        self.fill(home)
        home.write()
        return home


GENERATIONS: Mapping[str, Example] = MappingProxyType(
    {
        "g0-chat-panel": Example(0, _g0),
        "g1-inline-composer": Example(1, _g1),
        "g2-split-bubbles": Example(2, _g2),
        "g3-global-index": Example(3, _g3),
        "g4-header-table": Example(4, _g4),
        "g5-subagent-column": Example(5, _g5),
    }
)
