"""The session and prompt behind each line."""

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from backscroll.archive.archive import Archive
from backscroll.commits import content
from backscroll.commits.lines import hash_lines
from backscroll.commits.scan import SessionWork, load_sessions, update_scans
from backscroll.commits.survival import replay_commits
from backscroll.errors import CommitNotFoundError, RepositoryError, UsageError
from backscroll.git.repository import open_repository
from backscroll.model.commit import BlameLine
from backscroll.testing.claude_code import tool_calls
from tests.commits.conftest import START, Workplace

Code = Callable[[str, int], str]


def blame(
    workplace: Workplace, path: str, repository: Path | None = None, **options: object
) -> list[BlameLine]:
    with workplace.history() as history:
        return list(history.blame_file(path, repository or workplace.checkout.folder, **options))  # type: ignore[arg-type]


def prompts(lines: list[BlameLine]) -> list[str | None]:
    return [line.prompt for line in lines]


def test_each_line_has_its_commit_session_message_and_prompt(workplace: Workplace) -> None:
    first, second = workplace.session(0), workplace.session(5)
    first.write("src/prices.py", "base_price = 100\nvat_rate = 0.25\n")
    start = first.commit("Add prices")
    second.prompt("Add a discount")
    second.edit("src/prices.py", "vat_rate = 0.25\n", "vat_rate = 0.25\nseason_discount = 0.1\n")
    change = second.commit("Add a discount")
    with workplace.history() as history:
        lines = history.blame_file("src/prices.py", workplace.checkout.folder)
        session = history.get_session(second.ref)
    assert [(line.line, line.text, line.sha, line.session_ref, line.prompt) for line in lines] == [
        (1, "base_price = 100", start, first.ref, "Task 1"),
        (2, "vat_rate = 0.25", start, first.ref, "Task 1"),
        (3, "season_discount = 0.1", change, second.ref, "Add a discount"),
    ]
    last = lines[2]
    assert last.first is not None and last.last is not None
    (wrote,) = (message for message in session.messages if message.id == last.message_id)
    assert wrote.tool is not None and wrote.tool.name == "Edit"
    turn = session.messages[last.first : last.last + 1]
    assert (turn[0].id, turn[0].content) == (last.prompt_id, "Add a discount")
    assert wrote in turn


def test_a_line_belongs_to_the_session_that_wrote_it_and_not_to_the_best_of_its_commit(
    workplace: Workplace, code: Code
) -> None:
    small, large = workplace.session(0), workplace.session(0.01)
    small.write("src/rates.py", "lowest_rate_of_all = 3\n")
    large.write("src/prices.py", code("price", 20))
    sha = large.commit("Add prices and rates")
    assert workplace.refs(sha)[0] == large.ref
    (line,) = blame(workplace, "src/rates.py")
    assert (line.session_ref, line.prompt) == (small.ref, "Task 1")


def test_the_turn_that_wrote_a_line_gives_the_prompt(workplace: Workplace) -> None:
    session = workplace.session(0)
    session.write("src/prices.py", "base_price = 100\n")
    session.prompt("Now the VAT")
    session.edit("src/prices.py", "base_price = 100\n", "base_price = 100\nvat_rate = 0.25\n")
    session.prompt("Commit it")
    session.commit("Add prices")
    assert prompts(blame(workplace, "src/prices.py")) == ["Task 1", "Now the VAT"]


def test_lines_that_no_assistant_wrote_have_no_session(workplace: Workplace) -> None:
    session = workplace.session(0)
    session.write("src/prices.py", "base_price = 100\nvat_rate = 0.25\n")
    workplace.checkout.write("src/prices.py", "base_price = 120\nvat_rate = 0.25\nlimit_of_user = 7\n")
    session.commit("Add prices")
    lines = blame(workplace, "src/prices.py")
    assert [line.session_ref for line in lines] == [None, session.ref, None]
    assert lines[0].author == "Robin Vale"
    assert (lines[0].message_id, lines[0].prompt) == (None, None)


def test_repeating_a_committed_line_by_hand_is_not_the_work_of_the_session(workplace: Workplace) -> None:
    session = workplace.session(0)
    session.write("src/prices.py", "total = round(amount, 2)\nbase_price = 100\n")
    session.commit("Add prices")
    text = (workplace.checkout.folder / "src/prices.py").read_text()
    workplace.checkout.write("src/prices.py", text + "limit_of_user = 7\ntotal = round(amount, 2)\n")
    workplace.checkout.commit("Repeat", START + timedelta(days=1))
    found = [line.session_ref for line in blame(workplace, "src/prices.py")]
    assert found == [session.ref, session.ref, None, None]


def test_lines_that_are_not_committed_have_their_session(workplace: Workplace) -> None:
    workplace.checkout.write("src/prices.py", "base_price = 100\n")
    sha = workplace.checkout.commit("Start", START - timedelta(days=1))
    session = workplace.session(0)
    session.edit("src/prices.py", "base_price = 100\n", "base_price = 100\nvat_rate = 0.25\n")
    with (workplace.checkout.folder / "src/prices.py").open("a") as file:
        file.write("limit_of_user = 7\n")
    found = [(line.sha, line.session_ref) for line in blame(workplace, "src/prices.py")]
    assert found == [(sha, None), (None, session.ref), (None, None)]


def test_a_new_file_that_was_only_added_has_its_session(workplace: Workplace) -> None:
    workplace.checkout.commit("Start", START - timedelta(days=1))
    session = workplace.session(0)
    session.write("src/prices.py", "base_price = 100\n")
    workplace.checkout.run("add", "src/prices.py")
    (line,) = blame(workplace, "src/prices.py")
    assert (line.sha, line.session_ref) == (None, session.ref)


def test_short_and_empty_lines_belong_to_the_edit_around_them(workplace: Workplace) -> None:
    session = workplace.session(0)
    session.write("src/shop.js", "function open(shop) {\n\n  if (shop) {\n    ring(shop.bell)\n  }\n}\n")
    session.commit("Open the shop")
    text = (workplace.checkout.folder / "src/shop.js").read_text()
    workplace.checkout.write("src/shop.js", text + "{\n}\n")
    workplace.checkout.commit("By hand", START + timedelta(days=1))
    found = [line.session_ref for line in blame(workplace, "src/shop.js")]
    assert found == [session.ref] * 6 + [None] * 2


def test_moved_copied_and_indented_lines_keep_their_session(workplace: Workplace, code: Code) -> None:
    session = workplace.session(0)
    session.write("src/prices.py", code("price", 4))
    session.commit("Add prices")
    checkout = workplace.checkout
    checkout.write("lib/copied.py", (checkout.folder / "src/prices.py").read_text())
    checkout.commit("Copy", START + timedelta(days=1))
    checkout.run("mv", "src/prices.py", "src/cost.py")
    indented = "".join(f"    {line}\n" for line in code("price", 4).splitlines())
    checkout.write("src/cost.py", f"class Prices:\n{indented}")
    checkout.commit("Move", START + timedelta(days=2))
    for path, expected in (("lib/copied.py", session.ref), ("src/cost.py", session.ref)):
        lines = [line for line in blame(workplace, path) if line.text.strip()]
        assert {line.session_ref for line in lines if "class" not in line.text} == {expected}
    assert lines[0].session_ref is None


def test_lines_that_a_formatter_wrapped_keep_their_session(workplace: Workplace) -> None:
    session = workplace.session(0)
    session.write("src/shop.py", "total = add_prices(first_price, 'second price', vat_rate)\nother = 3\n")
    formatted = 'total = add_prices(\n    first_price,\n    "second price",\n    vat_rate,\n)\nother = 3\n'
    workplace.checkout.write("src/shop.py", formatted)
    workplace.checkout.commit("Add the shop", START + timedelta(minutes=10))
    assert {line.session_ref for line in blame(workplace, "src/shop.py")} == {session.ref}


def test_lines_that_a_later_commit_reformatted_keep_their_session(workplace: Workplace) -> None:
    session = workplace.session(0)
    session.write("src/shop.js", "const title = 'Harbour shop'\nconst limit = 'many boats'\n")
    session.commit("Add the shop")
    workplace.checkout.write("src/shop.js", 'const title = "Harbour shop";\nconst limit = "many boats";\n')
    later = workplace.checkout.commit("Format", START + timedelta(days=3))
    found = [(line.sha, line.session_ref) for line in blame(workplace, "src/shop.js")]
    assert found == [(later, session.ref)] * 2


def test_lines_of_a_squash_have_their_own_sessions(workplace: Workplace) -> None:
    checkout = workplace.checkout
    checkout.commit("Start", START - timedelta(days=1))
    checkout.run("checkout", "--quiet", "-b", "feature")
    first, second = workplace.session(0, branch="feature"), workplace.session(30, branch="feature")
    first.write("src/prices.py", "base_price = 100\n")
    first.commit("Add a price")
    second.edit("src/prices.py", "base_price = 100\n", "base_price = 100\nvat_rate = 0.25\n")
    second.commit("Add VAT")
    checkout.run("checkout", "--quiet", "main")
    checkout.run("merge", "--quiet", "--squash", "feature")
    checkout.commit("Prices", START + timedelta(days=7))
    checkout.run("branch", "--quiet", "-D", "feature")
    assert [line.session_ref for line in blame(workplace, "src/prices.py")] == [first.ref, second.ref]


def test_a_line_of_a_subagent_has_the_prompt_of_the_user(workplace: Workplace) -> None:
    session = workplace.session(0)
    path = workplace.checkout.folder / "src/prices.py"
    text = "base_price = 100\n"
    session.transcript.delegate("Add prices", "Done.", calls=[tool_calls.write(str(path), text)])
    workplace.checkout.write("src/prices.py", text)
    session.commit("Add prices")
    with workplace.history() as history:
        (line,) = history.blame_file("src/prices.py", workplace.checkout.folder)
        messages = history.get_session(session.ref).messages
        assert line.agent_ref is not None
        assert history.find(line.agent_ref).parent_ref == session.ref
    assert (line.session_ref, line.prompt) == (session.ref, "Task 1")
    assert line.message_id in {message.id for message in messages}


def test_another_clone_has_the_same_sessions(workplace: Workplace, code: Code) -> None:
    session = workplace.session(0)
    session.write("src/prices.py", code("price", 2))
    session.commit("Add prices")
    bare = workplace.checkout.bare_clone(workplace.folder / "elsewhere" / "copy.git")
    for options in ({}, {"ref": "main"}):
        found = blame(workplace, "src/prices.py", bare, **options)
        assert {line.session_ref for line in found if line.text} == {session.ref}


def test_a_file_of_the_same_name_in_another_project_is_no_evidence(workplace: Workplace) -> None:
    session = workplace.session(0)
    session.write("README.md", "Install the shop, then start it.\n")
    other = workplace.checkout.__class__(workplace.folder / "work" / "other")
    other.write("README.md", "Install the shop, then start it.\nAnd something else.\n")
    other.commit("Start", START + timedelta(days=1))
    assert [line.session_ref for line in blame(workplace, "README.md", other.folder)] == [None, None]


def test_lines_and_refs_select_a_part_of_the_file(workplace: Workplace) -> None:
    session = workplace.session(0)
    session.write("src/prices.py", "base_price = 100\nvat_rate = 0.25\nlast_price = 3\n")
    start = session.commit("Add prices")
    session.write("src/prices.py", "nothing_left = True\n")
    session.commit("Remove them")
    lines = blame(workplace, "src/prices.py", lines=(2, 9), ref=start)
    assert [(line.line, line.text) for line in lines] == [(2, "vat_rate = 0.25"), (3, "last_price = 3")]


def test_a_path_is_relative_to_the_root_or_absolute(workplace: Workplace) -> None:
    workplace.checkout.write("src/prices.py", "base_price = 100\n")
    workplace.checkout.commit("Start", START)
    absolute = workplace.checkout.folder / "src/prices.py"
    with workplace.history() as history:
        assert len(history.blame_file(absolute)) == 1
        assert len(history.blame_file(absolute, workplace.checkout.folder)) == 1
        assert len(history.blame_file("src/prices.py", workplace.checkout.folder / "src")) == 1


def test_errors_name_the_reason(workplace: Workplace) -> None:
    checkout = workplace.checkout
    checkout.write("a.py", "one = 1\n")
    checkout.write("picture.png", b"\x89PNG\0\0")
    checkout.write("empty.py", "")
    checkout.write("gone.py", "two = 2\n")
    checkout.commit("Start", START)
    checkout.write("new.py", "two = 2\n")
    (checkout.folder / "gone.py").unlink()
    expected: list[tuple[str, dict[str, object], type[Exception], str]] = [
        ("new.py", {}, RepositoryError, "new.py is not tracked by git"),
        ("missing.py", {}, RepositoryError, "missing.py is not a file of"),
        ("gone.py", {}, RepositoryError, "--ref HEAD"),
        ("missing.py", {"ref": "main"}, RepositoryError, "is not in the commit"),
        ("picture.png", {}, RepositoryError, "binary"),
        (".", {}, RepositoryError, "is a folder"),
        ("a.py", {"lines": (2, 3)}, UsageError, "a.py has 1 line, not 2"),
        ("a.py", {"lines": (0, 3)}, UsageError, "Lines count from 1"),
        ("a.py", {"ref": "nowhere"}, CommitNotFoundError, "nowhere"),
    ]
    with workplace.history() as history:
        for path, options, error, text in expected:
            with pytest.raises(error, match=text.replace(".", r"\.")):
                history.blame_file(path, checkout.folder, **options)  # type: ignore[arg-type]
        assert history.blame_file("empty.py", checkout.folder) == ()
        with pytest.raises(RepositoryError, match="is a folder"):
            history.blame_file(checkout.folder)
        with pytest.raises(RepositoryError, match="not in a git repository"):
            history.blame_file(workplace.folder / "a.py")


def test_the_result_does_not_depend_on_the_commits_that_were_read_before(workplace: Workplace) -> None:
    session = workplace.session(0)
    checkout = workplace.checkout
    text = "".join(f"price_of_the_ticket_{name} = {number}\n" for number, name in enumerate("abc"))
    session.write("src/prices.py", text)
    session.commit("Add prices")
    (checkout.folder / "lib").mkdir()
    checkout.run("mv", "src/prices.py", "lib/prices.py")
    checkout.commit("Move", START + timedelta(days=1))
    checkout.write("lib/prices.py", "nothing_left = True\n")
    checkout.commit("Remove the prices", START + timedelta(days=2))
    checkout.write("lib/prices.py", text)
    checkout.commit("Prices again", START + timedelta(days=3))
    first = blame(workplace, "lib/prices.py")
    workplace.commits()  # stores all commits
    assert blame(workplace, "lib/prices.py") == first


def test_only_some_sessions_are_needed_to_find_those_that_wrote_a_line(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content, "MAX_WRITERS", 2)
    for number in range(9):
        session = workplace.session(number)
        session.write(f"src/part{number % 4}.py", f"return common_value\nsize_of_part = {number}\n")
        if number % 3 == 0:
            session.transcript.delegate(
                "Add a part",
                "Done.",
                calls=[tool_calls.write(f"/x/part{number}.py", "return common_value\n")],
            )
    common, rare = hash_lines([b"return common_value"])[0], hash_lines([b"size_of_part = 5"])[0]
    workplace.history().close()
    with closing(Archive(workplace.home / "archive.db")) as archive:
        update_scans(archive)
        everything = load_sessions(archive)
        for names in ({"part1.py"}, set()):
            selected = content.select_fragments(
                archive,
                {common, rare},
                lambda scan, names=names: any(name.encode() in scan for name in names),
            )
            sessions = load_sessions(archive, selected)
            assert len(sessions) < len(everything)
            expected = content.find_writers({common, rare}, everything, names)
            found = content.find_writers({common, rare}, sessions, names)
            assert _named(found, sessions) == _named(expected, everything)


def _named(
    writers: dict[int, list[content.Writer]], sessions: list[SessionWork]
) -> dict[int, list[tuple[str, content.Writer]]]:
    return {
        line: [(sessions[writer.session].ref, writer._replace(session=0)) for writer in found]
        for line, found in writers.items()
    }


FREQUENT = (
    "import os\nimport sys\nfrom pathlib import Path\nlogger = logging.getLogger(__name__)\n"
    "def client(app):\n    with app.test_client() as client:\n        yield client\n"
    "    try:\n        return json.loads(path.read_text())\n    except ValueError:\n        return None\n"
)


def test_a_long_file_of_frequent_lines_whose_writer_is_unknown_has_no_session(workplace: Workplace) -> None:
    for number, name in enumerate(["orders", "prices", "berths", "routes"]):
        session = workplace.session(number)
        session.write(f"src/{name}.py", f"{FREQUENT}{name}_limit = {number}\n")
        session.commit(f"Add {name}")
    last = workplace.session(4)
    last.write("src/pages.py", f"{FREQUENT}page_limit = 9\n")
    parts = FREQUENT.splitlines(keepends=True)
    typed = "".join(parts[number % len(parts)] for number in range(0, 300, 7))
    workplace.checkout.write("tests/test_everything.py", typed)
    last.commit("Add pages and tests")
    assert {line.session_ref for line in blame(workplace, "tests/test_everything.py")} == {None}
    assert {line.session_ref for line in blame(workplace, "src/pages.py")} == {last.ref}
    with closing(Archive(workplace.home / "archive.db")) as archive:
        replay = replay_commits(archive, open_repository(workplace.checkout.folder), ref="HEAD")
    assert set(replay.files["tests/test_everything.py"]) == {None}


def test_a_line_that_a_session_wrote_to_another_file_before_is_not_its_line(workplace: Workplace) -> None:
    session = workplace.session(0)
    session.write("src/prices.py", "base_price_of_the_ticket = 100\nvat_rate_of_the_season = 0.25\n")
    workplace.checkout.commit("Start", START - timedelta(days=1))
    workplace.checkout.write("src/prices.py", "nothing_left = True\n")
    workplace.checkout.commit("By hand", START + timedelta(hours=1))
    lines = "base_price_of_the_ticket = 100\nvat_rate_of_the_season = 0.25\n"
    workplace.checkout.write("src/other.py", lines)
    workplace.checkout.commit("Typed", START + timedelta(days=20))
    assert {line.session_ref for line in blame(workplace, "src/other.py")} == {None}
    assert survival_of(workplace, "src/other.py") == {None}


def survival_of(workplace: Workplace, path: str) -> set[str | None]:
    with closing(Archive(workplace.home / "archive.db")) as archive:
        replay = replay_commits(archive, open_repository(workplace.checkout.folder), ref="HEAD")
    found = replay.files[path]
    return {replay.sessions[line[0].session].ref if line is not None else None for line in found}


def test_a_new_file_like_an_older_one_belongs_to_the_session_that_wrote_it(
    workplace: Workplace, code: Code
) -> None:
    first, second = workplace.session(0), workplace.session(50)
    first.write("src/prices.py", code("price", 6))
    first.commit("Add prices")
    second.write("src/costs.py", code("price", 6) + "cost_limit = 3\n")
    sha = second.commit("Add costs")
    lines = [line for line in blame(workplace, "src/costs.py") if line.text]
    assert {(line.sha, line.session_ref) for line in lines} == {(sha, second.ref)}
    assert {line.session_ref for line in blame(workplace, "src/prices.py") if line.text} == {first.ref}


def test_code_that_the_user_moves_keeps_its_session(workplace: Workplace, code: Code) -> None:
    first, second = workplace.session(0), workplace.session(50)
    first.write("src/prices.py", code("price", 6))
    sha = first.commit("Add prices")
    second.write("src/costs.py", "cost_limit = 3\n")
    second.commit("Add costs")
    functions = code("price", 6).split("\n\n\n")
    workplace.checkout.write("src/prices.py", "\n\n\n".join(functions[:3]))
    workplace.checkout.write("src/costs.py", "cost_limit = 3\n" + "\n\n\n".join(functions[3:]))
    workplace.checkout.commit("Move", START + timedelta(days=5))
    lines = [line for line in blame(workplace, "src/costs.py") if line.text]
    assert [line.session_ref for line in lines] == [second.ref] + [first.ref] * 6
    assert {line.sha for line in lines[1:]} == {sha}
    assert survival_of(workplace, "src/costs.py") == {first.ref, second.ref, None}


def test_a_later_edit_does_not_own_the_lines_around_it(workplace: Workplace) -> None:
    text = "".join(f"price_of_the_{name} = 1\n" for name in ("berth", "route", "ticket"))
    workplace.checkout.write("src/prices.py", text)
    workplace.checkout.commit("By hand", START - timedelta(days=1))
    session = workplace.session(0)
    new = text.replace("route = 1", "route = 2")
    script = f"p = 'src/prices.py'\ns = open(p).read()\ns = s.replace('''{text}''', '''{new}''')\n"
    session.shell(f"python3 - <<'EOF'\n{script}open(p, 'w').write(s)\nEOF")
    workplace.checkout.write("src/prices.py", new)
    session.commit("Change the route")
    assert [line.session_ref for line in blame(workplace, "src/prices.py")] == [None, session.ref, None]


def test_a_script_that_names_its_file_changes_that_file(workplace: Workplace) -> None:
    workplace.checkout.write("src/prices.py", "base = 1\n")
    workplace.checkout.commit("Start", START - timedelta(days=1))
    session = workplace.session(0)
    session.shell(
        "python3 - <<'EOF'\np = 'src/prices.py'\ns = open(p).read()\n"
        "s = s.replace('''base = 1''', '''base = 1\nrate = 2\n''')\nopen(p, 'w').write(s)\nEOF"
    )
    workplace.checkout.write("src/prices.py", "base = 1\nrate = 2\n")
    workplace.checkout.commit("By the user, hours later", START + timedelta(hours=7))
    assert [line.session_ref for line in blame(workplace, "src/prices.py")] == [None, session.ref]


def test_the_path_before_a_rename_in_the_same_commit_is_the_same_file(
    workplace: Workplace, code: Code
) -> None:
    session = workplace.session(0)
    session.write("src/prices.py", code("price", 6))
    session.commit("Add prices")
    text = code("price", 6) + "season_limit = 9\n"
    session.write("src/prices.py", text)
    workplace.checkout.run("mv", "src/prices.py", "src/costs.py")
    workplace.checkout.commit("Rename, a day later", START + timedelta(days=1))
    assert blame(workplace, "src/costs.py")[-1].session_ref == session.ref
