"""One example history for each range of Claude Code versions."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from backscroll.testing.claude_code import blocks, tool_calls
from backscroll.testing.claude_code.events import task_notification
from backscroll.testing.claude_code.forks import (
    append_foreign_lines,
    continue_in_new_file,
    fork,
    repeat_lines,
    resume,
)
from backscroll.testing.claude_code.side_files import (
    Prompt,
    write_empty_stub,
    write_plan,
    write_prompts,
    write_running_process,
    write_session_index,
    write_settings,
    write_tasks,
    write_todos,
    write_workflow,
)
from backscroll.testing.claude_code.tool_calls import Call
from backscroll.testing.claude_code.transcript import Transcript
from tests.builders.claude_code.legacy_db import write_store

Generation = Callable[[Path, int], tuple[Transcript, ...]]

_TZ_PY = 'ZONE = "UTC"\n\n\ndef shift(hour):\n    return hour\n'
_IMAGE = bytes.fromhex("89504e470d0a1a0a") + bytes(range(64))


def version_0_2(root: Path, seed: int) -> tuple[Transcript, ...]:
    """0.2: several blocks per line, the cost of every response, no titles."""
    one = _session(seed, "0.2.122", datetime(2025, 4, 2, 9, tzinfo=UTC))
    one.user("Why is the ferry timetable parser off by one hour?")
    one.run(
        tool_calls.bash("grep -n tz ferry.toml", 'tz = "Europe/Oslo"'),
        text="I will look at the timezone first.",
        thinking="Perhaps the timezone is wrong.",
    )
    one.run(
        tool_calls.edit("/home/zoe/ferry/tz.py", '"UTC"', '"Europe/Oslo"', original=_TZ_PY), text="Found it."
    )
    one.assistant("The parser took UTC for local time. Fixed.")
    one.error("Claude AI usage limit reached|1743588000", status=None)
    two = _session(seed, "0.2.122", datetime(2025, 4, 3, 9, tzinfo=UTC))
    two.user([blocks.text("This screenshot is wrong"), blocks.image(_IMAGE)]).assistant("I see a clock.")
    two.compact("The clock is one hour off.").user("Go on").assistant("Going on.")
    three = _session(seed, "0.2.122", datetime(2025, 4, 4, 9, tzinfo=UTC))
    three.user("Where is the quay?").run(
        tool_calls.bash("grep -n quay ferry.toml", "quay = 4"), text="I look."
    )
    three.assistant("Behind the dike.").summary("The quay behind the dike", three.last_uuid)
    write_store(root, three)
    write_settings(root, cleanup_days=30)
    return _write_all(root, one, two)


def version_1_0(root: Path, seed: int) -> tuple[Transcript, ...]:
    """1.0: inline sidechains, summaries in other files, resume into a new file, MultiEdit, commands."""
    first = _session(seed, "1.0.98", datetime(2025, 8, 5, 9, tzinfo=UTC))
    first.command("model", "opus", stdout="Set model to opus")
    first.user("List every place that reads a timetable").delegate(
        "Find all callers of parse_timetable",
        "Two: web.py and cli.py.",
        calls=[tool_calls.grep("parse_timetable", ["web.py", "cli.py"])],
    )
    first.run(tool_calls.todos([("fix web.py", "in_progress"), ("fix cli.py", "pending")]))
    first.run(
        tool_calls.multi_edit("/home/zoe/ferry/web.py", [("UTC", "Oslo"), ("hour", "h")], original=_TZ_PY)
    )
    first.run(
        tool_calls.ls("/home/zoe/ferry", ["web.py", "cli.py"]),
        tool_calls.read("/home/zoe/ferry/cli.py", "import web\n"),
    )
    first.assistant("Both callers are changed.").bash_mode("ls", "web.py\ncli.py")
    first.user_line("<user-memory-input>always use Oslo time</user-memory-input>")
    first.prompt_command("audit", "web.py").assistant("web.py is sound.")
    second = resume(first, seed=seed)
    second.user("And the winter table?").assistant("That one was right already.")
    third = continue_in_new_file(second, seed=seed + 1)
    third.user("Run the tests").assistant(tools=[tool_calls.bash("make test")])
    third.reject(third.tool_ids[-1]).interrupt(for_tool=True)
    third.compact("The callers are changed.").user("Thank you").assistant("You are welcome.")
    titles = _session(seed, "1.0.98", datetime(2025, 8, 9, 9, tzinfo=UTC))
    titles.summary("Ferry timetable DST fix", second.last_uuid).summary(
        "Title of an unknown line", titles.new_uuid()
    )
    write_todos(root, first, [("fix web.py", "completed"), ("fix cli.py", "pending")], old=True)
    return _write_all(root, first, second, third, titles)


def version_2_0_0(root: Path, seed: int) -> tuple[Transcript, ...]:
    """2.0.0: file history, thinking metadata, API errors, compaction boundaries, rewinds."""
    one = _session(seed, "2.0.5", datetime(2025, 10, 1, 9, tzinfo=UTC))
    one.user("Make shift() know about daylight saving")
    prompt_uuid = one.last_uuid
    one.snapshot(prompt_uuid, {}, update=False)
    one.run(
        tool_calls.edit("/home/zoe/ferry/tz.py", "return hour", "return hour + 1", original=_TZ_PY),
        thinking="An hour more in summer.",
    )
    one.snapshot(
        prompt_uuid,
        {"tz.py": one.back_up_file("tz.py", _TZ_PY.encode()), "new.txt": one.back_up_file("new.txt", None)},
    )
    one.system("api_error", level="error").assistant("Done, one hour more.")
    one.branch_from(prompt_uuid).assistant("On second thought I ask first: which zones?")
    one.user("Only Oslo").run(
        tool_calls.bash("npm run dev", "listening"), tool_calls.bash_output("bash_1", "listening")
    )
    one.run(tool_calls.kill_bash("bash_1")).assistant("Stopped.")
    one.compact("Only Oslo matters.", trigger="manual").user("Write the changelog").run(
        tool_calls.write("/home/zoe/ferry/CHANGES", "Oslo time\n"),
        tool_calls.bash("git diff", "").failed("not a git repository"),
    )
    one.assistant("Written.").system(None, "Running hook make lint", level="info")
    two = _session(seed, "2.0.14", datetime(2025, 10, 2, 9, tzinfo=UTC))
    two.user(
        [
            blocks.text("<ide_opened_file>The user opened tz.py</ide_opened_file>"),
            blocks.text("Explain this file"),
        ]
    )
    two.prompts = ["Explain this file"]
    two.assistant("It shifts hours.").summary("Explain tz.py", two.last_uuid)
    return _write_all(root, one, two)


def version_2_0_28(root: Path, seed: int) -> tuple[Transcript, ...]:
    """2.0.28 to 2.0.6x: agent files next to the session files, queues, slugs, renamed sessions."""
    one = _session(seed, "2.0.64", datetime(2025, 12, 1, 9, tzinfo=UTC))
    one.user("Compare the summer and the winter table")
    one.delegate(
        "Read the summer table",
        "It has 40 rows.",
        calls=[tool_calls.read("/home/zoe/ferry/summer.csv", "a,b\n1,2")],
    )
    one.queued("also check the ticket prices").assistant("The tables differ in 3 rows; prices are equal.")
    repeat_lines(one.run(tool_calls.glob("*.csv", ["summer.csv", "winter.csv"])), 2)
    one.custom_title("Summer and winter")
    warmup_agent = one.subagent("Warmup")
    warmup_agent.assistant("I am ready.")
    agent_without_prompt = one.subagent(None)
    agent_without_prompt.assistant("A line that no prompt precedes.")
    one.files[f"{one.folder}/session-memory/summary.md"] = b"# Tables compared\n"
    one.user_line(
        "<bash-notification>\n<shell-id>b1</shell-id>\n<status>completed</status>\n</bash-notification>"
    )
    one.run(
        tool_calls.ask("Which table counts?", ["summer", "winter"], "summer"),
        tool_calls.exit_plan("1. Take the summer table"),
    )
    one.assistant("Summer it is.")
    write_plan(root, one, "# Plan\n\nTake the summer table.\n")
    return _write_all(root, one)


def version_2_0_76(root: Path, seed: int) -> tuple[Transcript, ...]:
    """2.0.76 to 2.1.x: progress, hooks, results in side files, nested agents, tasks, a session index."""
    one = _session(seed, "2.1.9", datetime(2026, 1, 9, 9, tzinfo=UTC))
    one.progress("hook_progress", hookEvent="SessionStart").user("Find what slows the import down")
    prompt_uuid = one.last_uuid
    one.snapshot(prompt_uuid, {"import.py": one.back_up_file("import.py", b"import csv\n")})
    one.run(
        tool_calls.bash("make profile", "slow: csv"),
        tool_calls.grep("csv", ["import.py"]),
        thinking="Measure first.",
    )
    output = "\n".join(f"row {number} of the profile" for number in range(4000))
    one.spill(tool_calls.bash("cat profile.txt"), output).spill(
        tool_calls.bash("cat more.txt"), output[:40_000], name="b7e1a2c"
    )
    one.delegate(
        "Look at csv usage",
        "It parses twice.",
        calls=[tool_calls.read("/home/zoe/ferry/import.py", "import csv")],
    )
    one.queued("skip the tests please").assistant("The file was parsed twice; now once.")
    one.system("stop_hook_summary").system("turn_duration").system(
        "microcompact_boundary", "Context microcompacted"
    )
    message_id, timing_call = (
        one.new_id("msg"),
        Call("Bash", {"command": "make time"}, id=one.new_id("toolu")),
    )
    one.assistant("Checking once more.", tools=[timing_call], message_id=message_id)
    one.result(str(timing_call.id), "0.4 s").assistant("It takes 0.4 s.", message_id=message_id)
    one.command("cost", stdout="Total cost: $0.42", siblings=True)
    one.compact("The import parses once.", logical_parent=one.new_uuid()).user("Commit it").assistant(
        "Committed."
    )
    two = _session(seed, "2.1.20", datetime(2026, 1, 20, 9, tzinfo=UTC))
    two.user("Plan the next import").run(
        tool_calls.mcp("tickets", "list", {"open": True}, "T-1 import is slow")
    )
    two.run(Call("TaskCreate", {"subject": "Import once"}, "Task #1 created", {"task": {"id": "1"}}))
    two.assistant("Planned.", thinking="")
    two.prompt_command("tickets:close", "T-1").assistant("T-1 is closed.")
    _write_all(root, one, two)
    write_session_index(root, [one, two])
    write_tasks(root, two, [("Import once", "in_progress"), ("Measure", "pending")])
    return one, two


def version_2_1_8x(root: Path, seed: int) -> tuple[Transcript, ...]:
    """2.1.8x to 2.1.9x: origins, entry points, attachments, generated titles, final usage on every line."""
    one = _session(seed, "2.1.97", datetime(2026, 4, 10, 9, tzinfo=UTC))
    one.permission_mode("acceptEdits").attachment("hook_success", hookName="SessionStart", content="ready")
    one.user("Add a page for lost property", mode="acceptEdits")
    one.attachment("file", filename="/home/zoe/ferry/web.py", displayPath="web.py", content={"type": "text"})
    one.run(
        tool_calls.tool_search("select:WebFetch", ["WebFetch"]),
        tool_calls.fetch("https://example.invalid/lost", "A form."),
    )
    one.queued("use the blue header").run(
        tool_calls.write("/home/zoe/ferry/lost.html", "<h1>Lost</h1>\n"), text="Writing it."
    )
    one.delegate("Check the page", "It renders.").notification(
        "b12", one.tool_ids[-1], "Check finished", trailing="\nRead it."
    )
    one.run(
        tool_calls.screenshot("/home/zoe/ferry/lost.png", _IMAGE),
        tool_calls.web_search("lost property law", ["A law"]),
    )
    one.assistant("The page is there.").ai_title("Lost property page").pr_link(12).last_prompt(
        "use the blue header"
    )
    one.flush()
    branch = fork(one, remap=False, seed=seed)
    branch.user("Make it green instead").assistant("Green now.").custom_title("Green header")
    return _write_all(root, one, branch)


def version_2_1_118(root: Path, seed: int) -> tuple[Transcript, ...]:
    """2.1.118 to 2.1.16x: fork references, running processes, workflows, commands as system lines."""
    one = _session(seed, "2.1.154", datetime(2026, 6, 1, 9, tzinfo=UTC))
    one.mode().command("model", "opus", stdout="Set model to opus", as_system=True)
    one.user("Audit every timetable").assistant("I will split the work.", thinking="One agent each.")
    one.fork_agent("Audit the summer table", "The summer table is sound.")
    run = "wf_1a2b3c4d"
    meta = {"agentType": "workflow-subagent", "spawnDepth": 1}
    agents = [one.subagent(f"Audit table {n}", under=f"workflows/{run}", meta=meta) for n in (1, 2)]
    for number, agent in enumerate(agents, 1):
        agent.run(tool_calls.bash(f"wc -l table{number}.csv", "40")).assistant(f"Table {number} has 40 rows.")
    one.delegate("Sum it up", "All is well.").assistant("All tables are sound.")
    one.bridge().ai_title("Audit timetables").last_prompt(leaf=one.last_uuid)
    copy = fork(one, title="Audit timetables", seed=seed)
    copy.user("Now the prices").assistant("Prices are fine too.")
    _write_all(root, one, copy)
    write_workflow(root, one, run, agents)
    write_running_process(root, one, 4242)
    return one, copy


def version_2_1_172(root: Path, seed: int) -> tuple[Transcript, ...]:
    """2.1.172 to 2.1.239: agents that start agents, worktrees, moved sessions, refusals, deltas, peers."""
    one = _session(seed, "2.1.224", datetime(2026, 8, 3, 9, tzinfo=UTC))
    one.user("Move the parser into its own package")
    prompt_uuid = one.last_uuid
    one.snapshot(prompt_uuid, {"tz.py": one.back_up_file("tz.py", _TZ_PY.encode())})
    one.delta(
        prompt_uuid,
        "tz.py",
        one.back_up_file("tz.py", _TZ_PY.encode() + b"\n", version=2)[0],
        2,
        snapshot_id=prompt_uuid,
    )
    one.delegate("Split the module", "Split in two.", calls=[tool_calls.bash("ls", "tz.py")])
    parent_agent = one.agents[-1]
    assert isinstance(parent_agent, Transcript)
    one.delegate("Check the imports", "Imports are right.", nested=parent_agent)
    one.worktree("dst").relocated("/home/zoe/ferry-dst").assistant("A first try.")
    one.refusal([one.last_uuid]).assistant("Moved.", model="claude-sonnet-5").peer(
        "The harbour page needs it too"
    )
    one.assistant("I sent them a message.").frame_link("/home/zoe/ferry/report.html", "Report").state(
        "atis-latch", atis=""
    )
    other = _session(seed, "2.1.234", datetime(2026, 8, 20, 9, tzinfo=UTC))
    append_foreign_lines(
        other, one.session_id, lambda file: file.user("A line of another session").assistant("Astray.")
    )
    other.user("Its own line").assistant("At home.").state("unheard-of-type", value=1)
    write_empty_stub(root, one, cwd="/home/zoe/ferry-dst")
    return _write_all(root, one, other)


def version_2_1_25x(root: Path, seed: int) -> tuple[Transcript, ...]:
    """2.1.25x to 2.1.29x: total costs, commands as sent, empty thinking, many kinds of attachment."""
    one = _session(seed, "2.1.288", datetime(2026, 10, 3, 7, tzinfo=UTC))
    one.attachment("environment", platform="linux").attachment("date", date="2026-10-03")
    one.user("Why is the ferry timetable parser off by one hour?")
    one.run(
        tool_calls.bash("grep tz ferry.toml", "tz = Europe/Oslo", description="Look up timezone"),
        thinking="",
        streamed=True,
    )
    one.queued("also check the winter table").assistant("Both tables ignore DST.", thinking="")
    one.error().system("api_error", level="error")
    background = Call(
        "Agent", {"description": "Watch", "prompt": "Watch the build", "run_in_background": True}, "Started"
    )
    one.run(background)
    agent = one.subagent(
        "Watch the build", meta={"agentType": "general-purpose", "toolUseId": one.tool_ids[-1]}
    )
    agent.assistant("The build is green.")
    one.queue("enqueue", task_notification(str(agent.agent_id), one.tool_ids[-1], "The build is green"))
    one.queue("dequeue").notification(str(agent.agent_id), one.tool_ids[-1], "The build is green")
    one.assistant("The build is green.").compact("Both tables ignore DST.").system(
        "away_summary", "Fixing DST"
    )
    one.prompt_command("audit", "winter").assistant("The winter table is sound.")
    one.user("Go on").assistant(
        "Finished.", usage={"input_tokens": None, "output_tokens": None}
    ).every_state().flush()
    write_prompts(root, [_prompt(one, text) for text in one.prompts])
    write_prompts(
        root,
        [Prompt("A prompt whose session is gone", one.now - timedelta(days=60), session_id=one.new_uuid())],
    )
    write_settings(root)
    return _write_all(root, one)


GENERATIONS: dict[str, Generation] = {
    "0.2": version_0_2,
    "1.0": version_1_0,
    "2.0.0": version_2_0_0,
    "2.0.28-2.0.6x": version_2_0_28,
    "2.0.76-2.1.x": version_2_0_76,
    "2.1.8x-2.1.9x": version_2_1_8x,
    "2.1.118-2.1.16x": version_2_1_118,
    "2.1.172-2.1.239": version_2_1_172,
    "2.1.25x-2.1.29x": version_2_1_25x,
}


def _session(seed: int, version: str, start: datetime) -> Transcript:
    id_ = Random(f"{seed}:{version}:{start}").getrandbits(128)
    digits = f"{id_:032x}"
    uuid = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"
    return Transcript(uuid, version=version, start=start, seed=seed)


def _prompt(session: Transcript, text: str) -> Prompt:
    return Prompt(text, session.now, session.cwd, session.session_id)


def _write_all(root: Path, *sessions: Transcript) -> tuple[Transcript, ...]:
    for session in sessions:
        session.write(root)
    return sessions
