"""The documentation is complete and its examples are correct.

``pytest tests/test_docs.py --update-golden`` rewrites the command-line reference. Review the diff.
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
from backscroll.history.history import History
from backscroll.index.query import FILTER_NAMES
from backscroll.model.message import Decision, Role, Status, TimeSource
from backscroll.model.session import Completeness, Filter
from backscroll.model.store import STORES
from backscroll.model.stream import Visibility
from tests.commands import Shell, fits, shown, subcommands, without_varying_parts, write_reference
from tests.python_statements import file_statements, parse_file
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
ABSOLUTE_PATH = re.compile(r"(?<![\w.…~%*<>}\\/:-])/(\w+)/")
ALLOWED_ROOTS = {"tmp", "home", "mnt", "name", "api"}  # first folders of absolute paths on a page

MESSAGE_BUILDERS = ("add_message", "build_message", "Message", "_draft_call")  # functions with a kind
DEMO = {"claude-code": ".claude", "cursor": ".config/Cursor", "cursor-cli": ".cursor"}

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="the commits of the demo need git")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home folder with the demo in ``~/demo``."""
    home = tmp_path_factory.mktemp("docs").resolve()
    assert Shell(home).run("backscroll demo ~/demo")[1] == 0
    return home


def prose(page: Path) -> str:
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def code_words(page: Path) -> set[str]:
    """Return all inline code of a page."""
    return set(re.findall(r"`([^`\n]+)`", prose(page)))


# --- links and paths ----------------------------------------------------------------------------------------


@every_page
def test_every_link_has_a_target(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        target, _, anchor = link.partition("#")
        assert "://" not in target, f"{link} leaves the project"
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), f"{link} does not exist"
        assert not anchor or anchor in anchors(found), f"{link} has no such heading"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    pending = [README]
    while pending:
        page = pending.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        pending += [
            (page.parent / link.partition("#")[0]).resolve()
            for link in LINK.findall(prose(page))
            if not link.startswith("#")
        ]
    assert set(PAGES) <= reached


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) < 150


@every_page
def test_no_page_contains_a_path_of_a_real_machine(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert str(ROOT) not in text
    assert set(ABSOLUTE_PATH.findall(text)) <= ALLOWED_ROOTS


# --- commands -----------------------------------------------------------------------------------------------


def test_every_command_is_in_the_reference() -> None:
    reference = REFERENCE.read_text(encoding="utf-8")
    for words in subcommands():
        assert f"# backscroll {' '.join(words)}\n" in reference


@needs_git
def test_the_command_reference_shows_the_real_output(tmp_path: Path, update_golden: bool) -> None:
    written = write_reference(tmp_path.resolve())
    if update_golden and without_varying_parts(
        REFERENCE.read_text(encoding="utf-8")
    ) != without_varying_parts(written):
        REFERENCE.write_text(written, encoding="utf-8")
    assert without_varying_parts(REFERENCE.read_text(encoding="utf-8")) == without_varying_parts(written)


@needs_git
@pytest.mark.parametrize("page", [README, DOCS / "index.md"], ids=lambda page: page.name)
def test_commands_on_a_page_print_the_shown_output(page: Path, tmp_path: Path) -> None:
    commands = list(shown(page.read_text(encoding="utf-8")))
    assert commands
    shell = Shell(tmp_path)
    for line, expected in commands:
        printed, _ = shell.run(line)
        assert fits(expected, printed), f"$ {line}\n{printed}"


# --- Python -------------------------------------------------------------------------------------------------


def examples(page: Path) -> Iterator[tuple[str, str | None]]:
    """Yield the Python blocks of a page with the output blocks that directly follow them."""
    blocks = list(FENCED.finditer(page.read_text(encoding="utf-8")))
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        if block[1] == "python":
            is_output = after is not None and after[1] == "text" and after.start() - block.end() <= 2
            yield block[2], after[2] if is_output and after is not None else None


@pytest.mark.parametrize("page", [README, DOCS / "reference" / "python.md"], ids=lambda page: page.name)
def test_python_on_a_page_prints_the_shown_output(
    page: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home / "demo"))
    monkeypatch.setenv("USERPROFILE", str(home / "demo"))
    names: dict[str, object] = {}
    blocks = list(examples(page))
    assert blocks
    for code, expected in blocks:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), names)
        assert expected is None or fits(expected, printed.getvalue()), f"{code}\n{printed.getvalue()}"


def test_every_public_value_is_in_the_python_reference() -> None:
    text = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    for name in model.__all__:
        assert re.search(rf"`{name}\b", text), f"{name} is missing"


def test_every_field_of_a_value_is_in_the_python_reference() -> None:
    """Fields of documents are on their own page, which is generated."""
    rows = re.findall(r"^- `([A-Z]\w+)`: (.*)$", prose(DOCS / "reference" / "python.md"), re.MULTILINE)
    fields = {name: set(re.findall(r"`(\w+)`", description)) for name, description in rows}
    for name in (
        "Opening",
        "Message",
        "ToolResult",
        "Closing",
        "ToolCall",
        "TokenUsage",
        "Agent",
        "Unit",
        "RecordCounts",
        "Retention",
        "Session",
        "SearchResult",
        "PaginatedResult",
    ):
        value = getattr(model, name)
        names = getattr(value, "__struct_fields__", None) or value._fields
        assert set(names) <= fields[name], name


def test_every_method_of_history_is_in_the_python_reference() -> None:
    known = code_words(DOCS / "reference" / "python.md")
    assert {"archive_path", *METHODS} <= {word.partition("(")[0] for word in known}
    assert set(Filter.__struct_fields__) <= known


def test_the_table_of_names_in_other_libraries_contains_only_existing_names() -> None:
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
    """Return a connection to an archive of the demo."""
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


def test_the_schema_page_contains_the_schema_version(archive: sqlite3.Connection) -> None:
    (version,) = archive.execute("pragma user_version").fetchone()
    assert f"`pragma user_version` is the version of the schema, today {version};" in " ".join(
        prose(SCHEMA).split()
    )


def test_the_queries_on_the_schema_page_can_be_executed(archive: sqlite3.Connection) -> None:
    blocks = [block[2] for block in FENCED.finditer(SCHEMA.read_text("utf-8")) if block[1] == "sql"]
    assert len(blocks) == 3
    for block in blocks:
        for query in filter(str.strip, block.split(";")):
            found = archive.execute(query, ["x"] * query.count("?")).fetchall()
            assert not found or not block.startswith("-- Each of these queries returns no row."), query


def test_every_filter_is_in_the_query_syntax() -> None:
    named = {
        word.partition(":")[0] for word in code_words(DOCS / "reference" / "query-syntax.md") if ":" in word
    }
    assert set(FILTER_NAMES) <= named


# --- other pages --------------------------------------------------------------------------------------------


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


def test_every_value_of_the_model_is_in_the_glossary() -> None:
    known = code_words(DOCS / "explain" / "glossary.md")
    for kind in (Role, Status, Decision, TimeSource, Completeness, Visibility):
        assert set(get_args(kind)) <= known
    assert set(STORES) <= known
    assert {item.__name__ for item in get_args(model.Item)} <= known


def test_every_kind_of_message_is_in_the_glossary() -> None:
    known = code_words(DOCS / "explain" / "glossary.md")
    for file in [*(PACKAGE / "sources").rglob("*.py"), PACKAGE / "model" / "message.py"]:
        for node in ast.walk(parse_file(file)):
            if not isinstance(node, ast.Call) or _function_name(node) not in MESSAGE_BUILDERS:
                continue
            for keyword in node.keywords:
                kinds = [
                    constant.value
                    for constant in ast.walk(keyword.value)
                    if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
                ]
                assert keyword.arg != "kind" or set(kinds) <= known, f"{file.name}: {kinds}"


def _function_name(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def test_every_environment_variable_is_documented() -> None:
    files = [file for file in PACKAGE.rglob("*.py") if "testing" not in file.relative_to(PACKAGE).parts]
    code = "\n".join(file.read_text(encoding="utf-8") for file in files)
    variables = set(re.findall(r'(?:environ\.get\(|folder\(|envvar=)"([A-Z_]+)"', code))
    assert len(variables) >= 8
    assert variables <= code_words(DOCS / "reference" / "config.md")


def test_every_member_of_a_source_is_documented() -> None:
    page = prose(DOCS / "adding-a-source.md")
    for name in {**vars(sources.Source), **sources.Source.__annotations__}:
        if not name.startswith("_"):
            assert re.search(rf"\| `{name}(\(.*\))?` \|", page), name


def test_no_module_can_use_the_network() -> None:
    """Check the statement of the privacy page."""
    network_modules = {
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
        for node in file_statements(file):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name not in network_modules and name.partition(".")[0] not in network_modules, (
                    f"{file} imports {name}"
                )
