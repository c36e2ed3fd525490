"""Slash commands: prompts if they start a model turn, else messages of the tool."""

from pathlib import Path

import pytest

from backscroll.testing.claude_code import Transcript, blocks, resume
from backscroll.testing.claude_code.tool_calls import Call
from tests.sources.claude_code.read_helpers import read_file, read_in_two_steps, read_session, texts_of

VERSIONS = ["1.0.69", "2.0.5", "2.1.50", "2.1.212", "2.1.288"]
_PLAN = (
    "<command-name>/plan</command-name>\n            <command-message>plan</command-message>\n"
    "            <command-args>make a list</command-args>"
)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_command_that_starts_a_model_turn_is_a_prompt(version: str, tmp_path: Path) -> None:
    session = Transcript(version=version).prompt_command("brew", "oolong strong", body="Brew the tea.")
    messages = read_session(session.assistant("Brewing."), tmp_path).messages
    assert [(m.role, m.kind, m.content) for m in messages] == [
        ("user", None, "/brew oolong strong"),
        ("system", "meta", "Brew the tea."),
        ("assistant", None, "Brewing."),
    ]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["clear", "model", "cost", "vendor-command"])
def test_a_command_that_the_tool_runs_itself_is_not_a_prompt(version: str, name: str, tmp_path: Path) -> None:
    session = Transcript(version=version).command(name, "x", stdout="done").user("next").assistant("ok")
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user") == ["next"]
    assert texts_of(messages, "system")[1:] == [f"/{name} x", "done"]


@pytest.mark.parametrize(
    "order",
    [
        ("command-message", "command-name", "command-args"),
        ("command-name", "command-message", "command-args"),
        ("command-args", "command-name", "command-message"),
    ],
)
@pytest.mark.parametrize("is_list", [False, True])
def test_an_answered_command_is_a_prompt_whatever_the_order_of_its_tags(
    order: tuple[str, ...], is_list: bool, tmp_path: Path
) -> None:
    values = {"command-name": "/tea:brew", "command-message": "tea:brew", "command-args": "oolong"}
    text = "\n".join(f"<{tag}>{values[tag]}</{tag}>" for tag in order)
    session = Transcript().user_line([blocks.text(text)] if is_list else text).assistant("Brewing.")
    messages = read_session(session, tmp_path).messages
    assert [(m.role, m.content) for m in messages] == [
        ("user", "/tea:brew oolong"),
        ("assistant", "Brewing."),
    ]


@pytest.mark.parametrize("is_message_first", [True, False])
def test_a_known_local_command_is_not_a_prompt_even_without_a_caveat(
    is_message_first: bool, tmp_path: Path
) -> None:
    tags = ["<command-name>/clear</command-name>", "<command-message>clear</command-message>"]
    session = Transcript().user_line("".join(reversed(tags) if is_message_first else tags)).assistant("ok")
    assert texts_of(read_session(session, tmp_path).messages, "user") == []


def test_a_command_with_output_is_a_prompt_if_the_model_answers(tmp_path: Path) -> None:
    session = Transcript(version="2.1.105").user_line(_PLAN)
    session.user_line("<local-command-stdout>Enabled plan mode</local-command-stdout>")
    session.attachment("plan_mode").assistant("Here is the plan.")
    messages = read_session(session, tmp_path).messages
    assert [(m.role, m.content) for m in messages] == [
        ("user", "/plan make a list"),
        ("system", "Enabled plan mode"),
        ("assistant", "Here is the plan."),
    ]


@pytest.mark.parametrize(
    "reply", ["error", "interruption", "expansion", "turn"], ids=lambda reply: f"by_an_{reply}"
)
def test_a_model_turn_without_an_answer_is_recognized(reply: str, tmp_path: Path) -> None:
    session = Transcript().user_line(_PLAN)
    match reply:
        case "error":
            session.error("API Error: Overloaded")
        case "interruption":
            session.interrupt()
        case "expansion":
            session.meta("Plan what the user describes.")
        case "turn":
            output = "<local-command-stdout>Enabled plan mode</local-command-stdout>"
            session.user_line(output, turnOrigin="human")
    assert texts_of(read_session(session, tmp_path).messages, "user") == ["/plan make a list"]


def test_a_command_without_a_model_turn_is_not_a_prompt(tmp_path: Path) -> None:
    session = Transcript().user_line(_PLAN).user_line("<local-command-stdout>ok</local-command-stdout>")
    session.meta("Continue from where you left off.").meta("<system-reminder>x</system-reminder>")
    session.assistant("No response requested.", model="<synthetic>")
    session.bash_mode("ls", "a").assistant("One file.").user("next").assistant("ok")
    assert texts_of(read_session(session, tmp_path).messages, "user") == ["next"]


def test_a_shell_command_that_the_model_answers_is_not_a_prompt(tmp_path: Path) -> None:
    session = Transcript().user_line(_PLAN).bash_mode("ls", "a").assistant("One file.")
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user") == []
    assert texts_of(messages, "system") == ["/plan make a list", "! ls", "a"]


def test_an_answer_below_a_cycle_of_parents_confirms_no_command(tmp_path: Path) -> None:
    session = Transcript().user_line(_PLAN).attachment("date").attachment("model")
    first, second = session.records[1:3]
    session.line({**first, "parentUuid": second["uuid"]}).assistant("ok")
    assert texts_of(read_session(session, tmp_path).messages, "user") == []


def test_an_answer_that_is_appended_later_makes_its_command_a_prompt(tmp_path: Path) -> None:
    session = Transcript().user_line(_PLAN).assistant("Here is the plan.")
    path = session.write(tmp_path)
    cut = path.read_bytes().index(b"\n") + 1
    (parsed,) = read_in_two_steps(path, cut).sessions
    assert [(m.role, m.content) for m in parsed.messages] == [
        ("user", "/plan make a list"),
        ("assistant", "Here is the plan."),
    ]


@pytest.mark.parametrize("tool", ["SlashCommand", "Skill"])
@pytest.mark.parametrize("has_id", [False, True], ids=["2.0.30", "2.0.45"])
def test_a_command_that_the_model_runs_is_not_a_prompt(tool: str, has_id: bool, tmp_path: Path) -> None:
    session = Transcript(version="2.0.30").user("brew it").run(Call(tool, {"command": "/brew"}, "Launching"))
    call = {"sourceToolUseID": session.tool_ids[-1]} if has_id else {}
    markup = "<command-message>brew is running…</command-message>\n<command-name>/brew</command-name>"
    session.user_line(markup, **call).meta("Brew the tea.").assistant("Brewing.")
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user") == ["brew it"]
    assert texts_of(messages, "system") == ["/brew", "Brew the tea."]


def test_a_turn_that_the_user_did_not_start_is_not_a_prompt(tmp_path: Path) -> None:
    session = Transcript(version="2.1.288").prompt_command("brew").assistant("Brewing.")
    session.records[0]["turnOrigin"] = "task_notification"
    assert texts_of(read_session(session, tmp_path).messages, "user") == []


def test_an_expansion_that_a_resume_of_1_0_copied_is_not_a_prompt(tmp_path: Path) -> None:
    first = Transcript(version="1.0.69").prompt_command("brew", body="Brew the tea.").assistant("Brewing.")
    first.records[1].pop("isMeta")  # lost in the copy
    second = resume(first, seed=2).user("And now?").assistant("It is ready.")
    messages = read_session(second, tmp_path).messages
    assert texts_of(messages, "user") == ["/brew", "And now?"]
    assert texts_of(messages, "system") == ["Brew the tea."]


@pytest.mark.parametrize(
    "texts",
    [
        ("Unknown slash command: steep",),
        ("Unknown skill: steep",),
        ("/steep", "This slash command can only be invoked by Claude, not directly by users."),
    ],
)
def test_refused_commands_are_not_prompts(texts: tuple[str, ...], tmp_path: Path) -> None:
    session = Transcript(version="2.0.76").user("one").assistant("ok")
    session.meta("<local-command-caveat>x</local-command-caveat>")
    caveat = session.leaf
    for text in texts:
        session.user_line(text)
    session.branch_from(caveat).assistant("No response requested.", model="<synthetic>").user("two")
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user") == ["one", "two"]
    assert texts_of(messages, "system")[1:] == [*texts, "No response requested."]


def test_a_prompt_below_a_caveat_is_recognized_by_its_answer_or_origin(tmp_path: Path) -> None:
    session = Transcript(version="2.0.76").meta("<local-command-caveat>x</local-command-caveat>")
    session.user_line("what is this?").assistant("A caveat.")
    session.meta("<local-command-caveat>x</local-command-caveat>")
    session.user_line("/code-review 12", origin={"kind": "human"})  # runs as a subagent since 2.1.325
    assert texts_of(read_session(session, tmp_path).messages, "user") == ["what is this?", "/code-review 12"]


def test_an_unknown_command_that_was_queued_is_not_a_prompt(tmp_path: Path) -> None:
    session = Transcript(version="2.1.212").user("one").assistant("ok")
    session.queue("enqueue", "/nosuch foo").queue("dequeue").system("local_command", "/nosuch foo")
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user") == ["one"]
    assert [(m.kind, m.content) for m in messages if m.role == "system"] == [("command", "/nosuch foo")]


def test_a_queued_command_is_one_prompt(tmp_path: Path) -> None:
    session = Transcript(version="2.1.105").queue("enqueue", "/brew oolong").queue("dequeue")
    session.prompt_command("brew", "oolong").assistant("Brewing.")
    assert texts_of(read_session(session, tmp_path).messages, "user") == ["/brew oolong"]


def test_a_skill_loaded_into_a_subagent_is_not_its_prompt(tmp_path: Path) -> None:
    session = Transcript(version="2.1.50").user("go")
    agent = session.subagent("Brew the tea", agent_id="a1")
    agent.user_line(
        "<command-message>steep</command-message>\n<command-name>steep</command-name>\n"
        "<skill-format>true</skill-format>\nWait four minutes."
    )
    agent.assistant("Brewing.")
    session.write(tmp_path)
    (parsed,) = read_file(agent.path(tmp_path), "agent").sessions
    assert texts_of(parsed.messages, "user") == ["Brew the tea"]


def test_a_command_in_a_subagent_is_a_prompt(tmp_path: Path) -> None:
    session = Transcript(version="2.1.50").user("go")
    agent = session.subagent("Look around", agent_id="a1").assistant("Looked.")
    agent.prompt_command("brew", "oolong").assistant("Brewing.")
    session.write(tmp_path)
    (parsed,) = read_file(agent.path(tmp_path), "agent").sessions
    assert texts_of(parsed.messages, "user") == ["Look around", "/brew oolong"]


def test_commands_before_and_after_a_compaction_are_prompts(tmp_path: Path) -> None:
    session = Transcript().prompt_command("brew").assistant("Brewing.").compact().command("compact")
    session.prompt_command("pour").assistant("Pouring.")
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user") == ["/brew", "/pour"]
    assert all(m.is_active for m in messages)


def test_an_interrupted_command_is_an_active_prompt(tmp_path: Path) -> None:
    session = Transcript().user("one").assistant("ok").prompt_command("brew").interrupt()
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user") == ["one", "/brew"]
    assert all(m.is_active for m in messages)


def test_a_rewound_command_is_an_inactive_prompt(tmp_path: Path) -> None:
    session = Transcript().user("one").assistant("ok")
    before = session.leaf
    session.prompt_command("brew").assistant("Brewing.")
    session.branch_from(before).prompt_command("pour").assistant("Pouring.")
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user") == ["one", "/pour"]
    assert texts_of(messages, "user", active=False) == ["one", "/brew", "/pour"]


def test_hook_output_after_a_tool_call_is_not_a_prompt(tmp_path: Path) -> None:
    session = Transcript(version="1.0.69").user("go")
    session.user_line("<post-tool-use-hook>formatted</post-tool-use-hook>").assistant("Done.")
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user") == ["go"]
    assert [(m.kind, m.content) for m in messages if m.role == "system"] == [("hook", "formatted")]
