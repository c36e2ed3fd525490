"""What the pages say is true.

``pytest tests/test_docs.py --update-golden`` writes the reference of the command line anew; the diff is to be
reviewed.
"""

import ast
import io
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest

from backscroll import errors, model, sources
from backscroll.config import NamedRoot
from backscroll.history import History
from backscroll.index.query.parser import FILTER_NAMES
from backscroll.model import STORES, Completeness, Decision, Filter, Role, Status, TimeSource, Visibility
from tests.commands import Shell, fits, shown, subcommands, without_varying_parts, write_reference
from tests.test_public_api import METHODS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"
REFERENCE = DOCS / "reference" / "cli.md"
SCHEMA = DOCS / "reference" / "schema.md"
PACKAGE = Path(model.__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])

LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ABSOLUTE = re.compile(r"(?<![\w.…~%*<>}\\/:-])/(\w+)/")
NOBODYS = {"tmp", "home", "mnt", "name", "api"}  # what absolute paths on a page may begin with

DEMO = {"claude-code": ".claude", "cursor": ".config/Cursor", "cursor-cli": ".cursor"}

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="the demo's commits need git")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the demo in ``~/demo``."""
    home = tmp_path_factory.mktemp("docs").resolve()
    assert Shell(home).run("backscroll demo ~/demo")[1] == 0
    return home


def prose(page: Path) -> str:
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def words(page: Path) -> set[str]:
    """Everything that a page names in code style."""
    return set(re.findall(r"`([^`\n]+)`", prose(page)))


# --- the pages as such --------------------------------------------------------------------------------------


@every_page
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        target, _, anchor = link.partition("#")
        assert "://" not in target, f"{link} leaves the project"
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors(found), f"{link} has no such heading"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = [README]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        waiting += [
            (page.parent / link.partition("#")[0]).resolve()
            for link in LINK.findall(prose(page))
            if not link.startswith("#")
        ]
    assert set(PAGES) <= reached


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) < 150


@every_page
def test_no_page_speaks_of_somebodys_own_machine(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert str(ROOT) not in text
    assert set(ABSOLUTE.findall(text)) <= NOBODYS


# --- commands -----------------------------------------------------------------------------------------------


def test_every_command_is_in_the_reference() -> None:
    reference = REFERENCE.read_text(encoding="utf-8")
    for words in subcommands():
        assert f"# backscroll {' '.join(words)}\n" in reference


@needs_git
def test_the_command_reference_shows_what_commands_print(tmp_path: Path, update_golden: bool) -> None:
    written = write_reference(tmp_path.resolve())
    if update_golden and without_varying_parts(
        REFERENCE.read_text(encoding="utf-8")
    ) != without_varying_parts(written):
        REFERENCE.write_text(written, encoding="utf-8")
    assert without_varying_parts(REFERENCE.read_text(encoding="utf-8")) == without_varying_parts(written)


@needs_git
@pytest.mark.parametrize("page", [README, DOCS / "index.md"], ids=lambda page: page.name)
def test_commands_on_a_page_print_what_it_says(page: Path, tmp_path: Path) -> None:
    commands = list(shown(page.read_text(encoding="utf-8")))
    assert commands
    shell = Shell(tmp_path)
    for line, said in commands:
        printed, _ = shell.run(line)
        assert fits(said, printed), f"$ {line}\n{printed}"


# --- Python -------------------------------------------------------------------------------------------------


def examples(page: Path) -> Iterator[tuple[str, str | None]]:
    """Every Python block of a page, with the output that directly follows it."""
    found = list(FENCED.finditer(page.read_text(encoding="utf-8")))
    for block, after in zip(found, [*found[1:], None], strict=True):
        if block[1] == "python":
            is_output = after is not None and after[1] == "text" and after.start() - block.end() <= 2
            yield block[2], after[2] if is_output and after is not None else None


@pytest.mark.parametrize("page", [README, DOCS / "reference" / "python.md"], ids=lambda page: page.name)
def test_python_on_a_page_does_what_it_says(page: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(home / "demo"))
    monkeypatch.setenv("USERPROFILE", str(home / "demo"))
    names: dict[str, object] = {}
    blocks = list(examples(page))
    assert blocks
    for code, said in blocks:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), names)
        assert said is None or fits(said, printed.getvalue()), f"{code}\n{printed.getvalue()}"


def test_every_public_value_is_in_the_python_reference() -> None:
    text = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    for name in model.__all__:
        assert re.search(rf"`{name}\b", text), f"{name} is missing"


def test_every_field_of_a_value_is_in_the_python_reference() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", prose(DOCS / "reference" / "python.md"), re.MULTILINE)
    fields = {name: set(re.findall(r"`(\w+)`", told)) for name, told in rows}
    for name in (
        "Opening",
        "Message",
        "Answer",
        "Closing",
        "ToolCall",
        "TokenUsage",
        "Agent",
        "Unit",
        "Tally",
        "Retention",
        "SessionSummary",
        "Session",
        "SearchMatch",
        "SearchResult",
        "Pagination",
        "PaginatedResult",
    ):
        value = getattr(model, name)
        said = value._fields if issubclass(value, tuple) else value.__struct_fields__
        assert set(said) <= fields[name], name


def test_everything_a_history_can_do_is_in_the_python_reference() -> None:
    known = words(DOCS / "reference" / "python.md")
    assert {"archive_path", *METHODS} <= {word.partition("(")[0] for word in known}
    assert set(Filter.__struct_fields__) <= known


def test_names_of_other_libraries_lead_to_names_that_exist() -> None:
    _, _, table = prose(DOCS / "reference" / "python.md").partition("## Names in other libraries")
    named = re.findall(r"`([A-Z]\w+)\.(\w+)`", table)
    assert named
    for owner, attribute in named:
        if owner in errors.__all__:
            assert attribute in vars(getattr(errors, owner)("said", "x"))
        else:
            assert hasattr(getattr(model, owner), attribute), f"{owner}.{attribute}"


# --- the archive and search ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def archive(home: Path) -> Iterator[sqlite3.Connection]:
    """An archive of the demo."""
    roots = [NamedRoot(name, home / "demo" / folder) for name, folder in DEMO.items()]
    with History(roots=roots, home=home / "archive") as history:
        history.sync()
        db = sqlite3.connect(history.archive_path)
    yield db
    db.close()


def test_every_table_and_column_is_in_the_schema(archive: sqlite3.Connection) -> None:
    sections = re.split(r"^#{2,3} (\w+)$", prose(SCHEMA), flags=re.MULTILINE)
    described = {name: set(re.findall(r"`(\w+)`", text)) for name, text in pairwise(sections)}
    tables = archive.execute("select name from sqlite_master where type = 'table'").fetchall()
    assert ("conversations",) in tables
    assert ("cursor_sessions",) in tables
    for (table,) in tables:
        columns = {name for _, name, *_ in archive.execute(f"pragma table_info({table})")}
        assert columns <= described.get(table, set()), table


def test_the_schema_says_which_version_it_is_of(archive: sqlite3.Connection) -> None:
    (version,) = archive.execute("pragma user_version").fetchone()
    assert f"`pragma user_version` is the version of the schema, today {version};" in " ".join(
        prose(SCHEMA).split()
    )


def test_the_questions_of_the_schema_can_be_asked(archive: sqlite3.Connection) -> None:
    asked, invalid = (block[2] for block in FENCED.finditer(SCHEMA.read_text("utf-8")) if block[1] == "sql")
    for query in filter(str.strip, asked.split(";")):
        archive.execute(query, ["x"] * query.count("?")).fetchall()
    for query in filter(str.strip, invalid.split(";")):
        assert archive.execute(query).fetchall() == [], query


def test_every_filter_is_in_the_query_syntax() -> None:
    named = {word.partition(":")[0] for word in words(DOCS / "reference" / "query-syntax.md") if ":" in word}
    assert set(FILTER_NAMES) <= named


# --- everything else that has a page ------------------------------------------------------------------------


def test_every_error_is_on_its_page() -> None:
    page = DOCS / "reference" / "errors.md"
    for name in errors.__all__:
        assert f"| `{name}` |" in prose(page)
    tree = (errors.__doc__ or "").split("\n\n")[1]
    assert tree in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sources.names())
def test_every_source_has_a_page_and_is_in_the_readme(name: str) -> None:
    page = DOCS / "formats" / f"{name}.md"
    assert f"(`{name}`)" in page.read_text(encoding="utf-8").splitlines()[0]
    assert f"| [`{name}`](docs/formats/{name}.md) |" in README.read_text(encoding="utf-8")


def test_every_word_of_the_model_is_in_the_glossary() -> None:
    known = words(DOCS / "explain" / "glossary.md")
    for kind in (Role, Status, Decision, TimeSource, Completeness, Visibility):
        assert set(get_args(kind)) <= known
    assert set(STORES) <= known
    assert {item.__name__ for item in get_args(model.Item)} <= known


def test_every_kind_of_message_is_in_the_glossary() -> None:
    known = words(DOCS / "explain" / "glossary.md")
    for file in [*(PACKAGE / "sources").rglob("*.py"), PACKAGE / "model" / "tool_results.py"]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or _called(node) not in (
                "say",
                "message_at",
                "Message",
                "_called",
            ):
                continue
            for keyword in node.keywords:
                kinds = [
                    one.value
                    for one in ast.walk(keyword.value)
                    if isinstance(one, ast.Constant) and isinstance(one.value, str)
                ]
                assert keyword.arg != "kind" or set(kinds) <= known, f"{file.name}: {kinds}"


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def test_every_variable_that_is_asked_for_is_described() -> None:
    files = [file for file in PACKAGE.rglob("*.py") if "testing" not in file.relative_to(PACKAGE).parts]
    code = "\n".join(file.read_text(encoding="utf-8") for file in files)
    asked = set(re.findall(r'(?:environ\.get\(|folder\(|envvar=)"([A-Z_]+)"', code))
    assert len(asked) >= 8
    assert asked <= words(DOCS / "reference" / "config.md")


def test_every_part_of_a_source_is_described() -> None:
    page = prose(DOCS / "adding-a-source.md")
    for name in vars(sources.Source):
        if not name.startswith("_"):
            assert re.search(rf"\| `{name}(\(.*\))?` \|", page), name


def test_nothing_can_reach_the_network() -> None:
    """The promise of the privacy page."""
    doors = {
        "socket",
        "ssl",
        "http",
        "urllib.request",
        "ftplib",
        "smtplib",
        "asyncio",
        "socketserver",
        "xmlrpc",
    }
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name not in doors and name.partition(".")[0] not in doors, f"{file} imports {name}"
