"""Prose by a model: quotes are verbatim or gone, and a failing model leaves the extracted entry."""

import sqlite3
import sys
from collections.abc import Callable
from datetime import UTC
from pathlib import Path

import pytest

from backscroll.errors import UsageError
from backscroll.history.history import History
from backscroll.journal import story
from backscroll.journal.journal import Journal
from backscroll.journal.story import ModelFailureError, parse_story, quoted_texts, run_model
from tests.journal.conftest import REASON, Workplace

ANSWER = f"""\
Sure, here is the entry.

### Summary

Prices are stored in cents. The assistant said “{REASON}”

### Decisions

- Cents: “{REASON}”
- Invented: “We will move everything to the blockchain next week.”

### Discussion

> User: How should we store prices?

> Assistant: I would keep all prices in cents, because floats don't add up.

> Assistant: This sentence was never said by anyone at all.
"""


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Install a plug-in of `llm` with the model ``fake``. It runs the given Python code to answer."""

    def install(code: str) -> None:
        folder = tmp_path / "plug-ins"
        info = folder / "fake_model-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-model\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[llm]\nfake = fake_model\n")
        (folder / "fake_model.py").write_text(
            "import time\n"
            "import llm\n\n"
            "class Fake(llm.Model):\n"
            "    model_id = 'fake'\n"
            "    def execute(self, prompt, stream, response, conversation=None):\n"
            f"        {code}\n\n"
            "@llm.hookimpl\n"
            "def register_models(register):\n"
            "    register(Fake())\n"
        )
        (folder / "answer.txt").write_text(ANSWER)
        monkeypatch.setenv("PYTHONPATH", str(folder))
        monkeypatch.setenv("LLM_USER_PATH", str(tmp_path / "llm"))

    return install


def test_a_model_writes_the_entry(
    journal: Journal, workplace: Workplace, plug_in: Callable[[str], None], tmp_path: Path
) -> None:
    plug_in(f"open({str(tmp_path / 'prompt.txt')!r}, 'w').write(prompt.prompt); return [{ANSWER!r}]")
    result = journal.write("HEAD", workplace.repository, model="fake")
    assert result.message == "Quotes that were not verbatim: replaced 1 quote and removed 2 quotes."
    assert result.entry is not None and result.entry.model == "fake"
    sections = result.entry.sections
    assert sections["summary"].startswith("Prices are stored in cents.")
    assert "blockchain" not in "".join(sections.values())
    assert sections["discussion"] == (
        f"> **User**, 09:00: How should we store prices?\n>\n> **Assistant**, 09:00: {REASON}"
    )
    assert workplace.second in sections["commit"]
    sent = (tmp_path / "prompt.txt").read_text()
    assert REASON in sent and "ghp_" not in sent
    with sqlite3.connect(tmp_path / "llm" / "logs.db") as log:
        tables = [name for (name,) in log.execute("select name from sqlite_master where name = 'responses'")]
        assert [log.execute("select count(*) from responses").fetchone() for _ in tables] in ([], [(0,)])
    log.close()


def test_prose_is_only_replaced_by_prose(
    journal: Journal, workplace: Workplace, plug_in: Callable[[str], None]
) -> None:
    assert journal.write("HEAD", workplace.repository).is_new
    plug_in(f"return [{ANSWER!r}]")
    told = journal.write("HEAD", workplace.repository, model="fake")
    assert (told.is_new, told.is_changed) == (False, True)
    assert told.path is not None
    text = told.path.read_text()
    assert "Written by fake" in text and text.count("backscroll:entry") == 1
    assert journal.write("HEAD", workplace.repository).is_changed is False
    assert told.path.read_text() == text


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "raise llm.ModelError('You exceeded your quota.')",
            "The model fake failed: You exceeded your quota.",
        ),
        ("return ['I cannot help with that.']", "The answer of fake is not an entry."),
        ("return ['']", "The model fake gave an empty answer."),
    ],
)
def test_a_failing_model_leaves_the_extracted_entry(
    journal: Journal, workplace: Workplace, plug_in: Callable[[str], None], code: str, message: str
) -> None:
    plug_in(code)
    result = journal.write("HEAD", workplace.repository, model="fake")
    assert result.message == f"{message} The entry was extracted without a model."
    assert result.is_new and result.entry is not None and result.entry.model is None
    assert REASON in result.entry.sections["decisions"]


def test_a_model_that_needs_a_key_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelFailureError, match="gpt-4o-mini failed: No key found"):
        run_model("gpt-4o-mini", "Be brief.", "Hello")


def test_an_unknown_model_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path))
    with pytest.raises(ModelFailureError, match=r"The model nonesuch failed: .*nonesuch"):
        run_model("nonesuch", "Be brief.", "Hello")


def test_a_slow_model_is_stopped(plug_in: Callable[[str], None]) -> None:
    plug_in("time.sleep(60); return ['late']")
    with pytest.raises(ModelFailureError, match="did not answer within 3 seconds"):
        run_model("fake", "Be brief.", "Hello", timeout_seconds=3)


def test_without_llm_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(story, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ModelFailureError, match=r"pip install backscroll\[llm\]"):
        run_model("fake", "Be brief.", "Hello")


def test_llm_is_not_imported_without_a_model(history: History) -> None:
    assert "llm" not in sys.modules


def test_an_assistant_writes_an_entry_with_verbatim_quotes(journal: Journal, workplace: Workplace) -> None:
    sections = {"summary": f"Cents it is: “{REASON}”", "decisions": "- “Yes, cents.”"}
    result, problems = journal.write_story(sections, "HEAD", workplace.repository, author="Claude")
    assert problems == [] and result is not None and result.is_new
    assert result.path is not None and "Written by Claude" in result.path.read_text()


def test_nothing_is_written_if_an_assistant_misquotes(journal: Journal, workplace: Workplace) -> None:
    sections = {"summary": "They said “I would keep the prices in cents, because floats never add up.”"}
    result, problems = journal.write_story(sections, "HEAD", workplace.repository)
    assert result is None
    assert [problem.suggestion for problem in problems] == [REASON]
    assert not (journal.folder(workplace.repository) / "daily").exists()


@pytest.mark.parametrize(
    ("sections", "message"),
    [({"summery": "a"}, "Unknown section 'summery'"), ({"decisions": "- a"}, "needs a summary")],
)
def test_an_entry_by_an_assistant_needs_known_sections(
    journal: Journal, workplace: Workplace, sections: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        journal.write_story(sections, "HEAD", workplace.repository)


def test_quotes_are_found_in_all_notations() -> None:
    text = (
        "> **User**, 09:00: First line\n> second line\n>\n> Assistant: Reply here.\n\n"
        'He said "three whole words" and "two words" and „drei ganze Wörter“ and'
        ' «trois mots français» and 「これは引用です」 and `"not a quote"`.\n'
    )
    assert list(quoted_texts(text)) == [
        "First line\nsecond line",
        "Reply here.",
        "three whole words",
        "drei ganze Wörter",
        "trois mots français",
        "これは引用です",
    ]


def test_headings_of_an_answer_may_vary() -> None:
    answer = (
        "```markdown\n## **Summary**\nA.\n# Decisions:\n- B\n#### Technical Synopsis\nC\n### Files\nD\n```"
    )
    assert parse_story(answer) == {"summary": "A.", "decisions": "- B", "synopsis": "C\n### Files\nD"}


def test_the_context_contains_material_and_instructions(history: History, workplace: Workplace) -> None:
    context = Journal(history._stores, zone=UTC).context("HEAD", workplace.repository)
    assert "Copy every quote exactly" in context.instructions
    assert f"Assistant at 2026-03-02 09:00: {REASON}" in context.material
    assert "ghp_" not in context.material
    assert context.path is None
