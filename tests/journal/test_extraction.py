"""The extraction of decisions, errors and open items from any conversation."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.git.log import Commit
from backscroll.highlights.sentences import is_correction, is_dropped, is_open, is_reasoned
from backscroll.journal.entry import build_entry, inline_quotes, quote_block
from backscroll.journal.material import Material, Part, Turn
from backscroll.model.journal import JournalEntry, Quote
from backscroll.model.message import Edit, Hunk, Message, Origin, ToolCall
from backscroll.model.session import SessionSummary

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
SESSION = SessionSummary(
    ref="claude-code:a1",
    id="a1",
    index=1,
    source="claude-code",
    platform="claude_code",
    title="Prices",
    workspace_path="/home/zoe/shop",
    workspace_name="shop",
    message_count=2,
    created_at=START,
    updated_at=START,
    first_message_preview=None,
    git_branch="main",
    models=("claude-opus-5",),
    version=None,
    agent_ids=(),
    parent_ref=None,
    interaction_count=1,
    acceptance_rate=None,
    total_tokens=None,
    total_changes=0,
    completeness="complete",
    is_gone=False,
)
EDIT = ToolCall(
    "e", "Edit", result="ok", status="completed", edits=(Edit("/home/zoe/shop/a.py", (Hunk((), ("x",)),)),)
)


def _shell(command: str, output: str, *, is_failed: bool = False) -> ToolCall:
    result = f"Exit code 1\n{output}" if is_failed else output
    return ToolCall(
        "b",
        "Bash",
        {"command": command},
        result=result,
        status="failed" if is_failed else "completed",
    )


def entry_of(*messages: str | ToolCall) -> JournalEntry:
    """Return the entry of one session. A text that starts with ``>`` is a prompt."""
    parts = [Part(number, _message(number, message)) for number, message in enumerate(messages)]
    turns: list[list[Part]] = []
    for part in parts:
        if part.message.role == "user" or not turns:
            turns.append([])
        turns[-1].append(part)
    material = Material(
        commit=Commit("f" * 40, (), "Kim", int(START.timestamp()) + 3600, 0, "", "Change prices"),
        patch_id="p",
        branch=None,
        sizes=(),
        changes=(),
        sessions=(SESSION,),
        turns=tuple(Turn(SESSION, tuple(own), any(p.message.tool is EDIT for p in own)) for own in turns),
    )
    return build_entry(material, UTC)


def _message(number: int, message: str | ToolCall) -> Message:
    at = START + timedelta(minutes=number)
    origin = Origin("a.jsonl", f"line {number}")
    if isinstance(message, ToolCall):
        return Message(str(number), "tool", "", origin, timestamp=at, tool=message)
    is_prompt = message.startswith(">")
    return Message(
        str(number), "user" if is_prompt else "assistant", message.lstrip(">"), origin, timestamp=at
    )


@pytest.mark.parametrize(
    ("reason", "dropped", "unfinished"),
    [
        ("We cache it because the API is slow.", "I did not add a retry.", "The docs are not done yet."),
        ("Wir puffern, weil sie langsam ist.", "Threads wurden verworfen.", "Die Tests sind noch nicht da."),
        ("Un cache, parce que l'API est lente.", "Les threads ont été écarté.", "Ce n'est pas encore testé."),
        ("Guardamos todo porque la API es lenta.", "La opción quedó descartada.", "Todavía no hay pruebas."),
        ("Guardamos, pois a API é lenta.", "A opção foi descartada.", "Ainda não há testes."),
        ("Teniamo tutto perché l'API è lenta.", "L'opzione è stata scartata.", "I test non ancora scritti."),
        ("Кешируем, потому что API медленный.", "От потоков отказались.", "Тесты ещё не написаны."),
        ("APIが遅いのでキャッシュします。", "スレッドは見送りました。", "テストはまだありません。"),
        ("因为接口很慢，所以加了缓存。", "没有采用多线程。", "测试尚未编写。"),
        ("API가 느리기 때문에 캐시합니다.", "스레드는 제외했습니다.", "테스트는 아직 없습니다."),
    ],
)  # fmt: skip
def test_reasons_alternatives_and_open_items_are_found_in_ten_languages(
    reason: str, dropped: str, unfinished: str
) -> None:
    assert is_reasoned(reason) and is_dropped(dropped) and is_open(unfinished)
    entry = entry_of("> Cache", EDIT, f"{reason} {dropped} {unfinished}")
    assert reason in entry.sections["decisions"] or reason in entry.sections["summary"]
    assert dropped in entry.sections["decisions"] and unfinished in entry.sections["open"]


def test_an_accepted_answer_is_a_decision_in_any_language() -> None:
    entry = entry_of("> Hangi veritabanı?", "SQLite yeterli olur.", "> Tamam, öyle olsun.", EDIT, "Bitti.")
    assert (
        "- “SQLite yeterli olur.” (assistant, 09:01)\n  - “Tamam, öyle olsun.”" in entry.sections["decisions"]
    )


def test_a_rejected_answer_is_marked() -> None:
    entry = entry_of("> Which store?", "Redis would do.", "> No, nothing that needs a server.", EDIT)
    assert entry.sections["decisions"].startswith("- Rejected: “Redis would do.”")


def test_talk_that_leads_to_nothing_is_not_lost() -> None:
    entry = entry_of("> Why is it slow?", "The index is missing on `orders`.", "> And now?", "It scans 2 GB.")
    text = "".join(entry.sections.values())
    assert "The index is missing on `orders`." in text and "It scans 2 GB." in text


def test_a_failure_is_told_with_its_end() -> None:
    entry = entry_of(
        "> Fix it",
        _shell("pytest -q", "E   KeyError: 'price'\n1 failed in 0.1s", is_failed=True),
        "The fixture has no price.",
        EDIT,
        _shell("pytest -q", "5 passed in 0.2s"),
        "Done.",
    )
    assert entry.sections["frustrations"] == (
        "- `pytest -q` failed: `KeyError: 'price'`, 1 failed in 0.1s."
        " “The fixture has no price.” (assistant, 09:02). Then it passed: 5 passed in 0.2s."
    )
    assert entry.sections["accomplishments"] == "- Passed: `pytest -q`, 5 passed in 0.2s"


@pytest.mark.parametrize(
    "output", ["bash: foo: command not found", "ls: cannot access 'a': No such file or directory"]
)
def test_a_typing_error_in_a_command_is_no_frustration(output: str) -> None:
    entry = entry_of(
        "> List", _shell("ls a", output, is_failed=True), EDIT, _shell("ls a b", "a\nb"), "Listed."
    )
    assert "frustrations" not in entry.sections


def test_a_check_that_never_passes_is_told() -> None:
    entry = entry_of(
        "> Fix it",
        EDIT,
        _shell("make test", "FAILED tests/a.py", is_failed=True),
        "It needs a database here.",
    )
    assert "It did not pass in this conversation." in entry.sections["frustrations"]


@pytest.mark.parametrize(
    "text",
    ["No, use the other file", "Stop", "Don't touch main", "Nein, die andere Datei", "違う、そっち", "不对"],
)
def test_corrections_are_recognized(text: str) -> None:
    assert is_correction(text)
    entry = entry_of("> Change it", EDIT, "Changed `a.py`.", f"> {text}", EDIT, "Changed back.")
    assert f"Corrected by the user: “{text}”" in entry.sections["frustrations"]


@pytest.mark.parametrize("text", ["no problem, thanks", "Good, go on with the tests", "Now the README"])
def test_other_prompts_are_no_corrections(text: str) -> None:
    assert not is_correction(text)


def test_a_long_conversation_gives_a_short_entry() -> None:
    messages: list[str | ToolCall] = []
    for number in range(80):
        messages += [
            f"> Please use approach {number}, because of rule {number}",
            f"Step {number} is slow, so module_{number}.py needs a cache. I left out part {number}.",
            EDIT,
            f"Part {number} now takes {number} ms. Table {number} is not done yet.",
        ]
    entry = entry_of(*messages)
    assert entry.sections["decisions"].count("\n- ") < 8
    assert entry.sections["open"].count("\n- ") < 5
    assert entry.sections["discussion"].count("**") <= 2 * 14
    assert sum(map(len, entry.sections.values())) < 8000


_TEXTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n"), min_size=1, max_size=200
)


@given(
    messages=st.lists(
        st.one_of(
            _TEXTS.map(lambda text: f"> {text}"),
            _TEXTS,
            st.just(EDIT),
            st.builds(_shell, st.sampled_from(["pytest", "make test"]), _TEXTS, is_failed=st.booleans()),
        ),
        max_size=12,
    )
)
def test_any_conversation_gives_an_entry_with_verbatim_quotes(messages: list[str | ToolCall]) -> None:
    entry = entry_of(*messages)
    for quote in entry.quotes:
        message = messages[quote.position]
        assert isinstance(message, str) and quote.text in message
    for text in entry.sections.values():
        assert text.strip() and "<!--" not in text


def test_an_inferred_time_of_a_quote_has_a_mark() -> None:
    for is_inferred, mark in ((False, ""), (True, "~")):
        quote = Quote("user", "Round once.", START, SESSION.ref, 3, is_inferred)
        assert quote_block(quote, START.date(), UTC) == f"> **User**, {mark}09:00: Round once."
        assert inline_quotes([quote], START.date(), UTC) == f"“Round once.” (user, {mark}09:00)"
