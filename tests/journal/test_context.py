"""Sessions that were open at the time of a commit, in its entry."""

from datetime import timedelta

from backscroll.history.history import History
from tests.builders.coding_session import CodingSession
from tests.journal.conftest import REASON, START, Workplace

SECRET = "ghp_Zk3vQ8sT1uWxY5aB7cD9eF2gH4iJ6kL0mN1p"
ADVICE = "I would round the VAT per line, because the law asks for it."


def discussion(history: History, sha: str, workplace: Workplace) -> str:
    entry = history.journal.write(sha, workplace.repository).entry
    assert entry is not None
    return entry.sections["discussion"]


def talk(workplace: Workplace, minutes: float) -> CodingSession:
    session = CodingSession(
        workplace.checkout,
        "5e551011-0000-4000-8000-000000000002",
        START + timedelta(minutes=minutes),
        seed=2,
    )
    session.prompt(f"How do we round? My token is {SECRET}")
    session.transcript.assistant(ADVICE)
    session.save(workplace.root)
    return session


def test_a_commit_without_a_session_quotes_the_session_that_was_open(workplace: Workplace) -> None:
    talk(workplace, 50)
    workplace.checkout.write("vat.py", "vat_rate = 0.25\n")
    sha = workplace.checkout.commit("Add VAT", START + timedelta(minutes=60))
    with workplace.history() as history:
        history.sync()
        text = discussion(history, sha, workplace)
        assert text.startswith("Also open at the time: `claude-code:5e551011` ")
        assert ADVICE in text
        assert SECRET not in text


def test_a_commit_with_a_session_names_the_other_one_after_its_own(workplace: Workplace) -> None:
    talk(workplace, 0)
    with workplace.history() as history:
        history.sync()
        own, label, other = discussion(history, workplace.second, workplace).partition(
            "Also open at the time: "
        )
        assert label and ADVICE in other
        assert ADVICE not in own and REASON not in other


def test_the_window_of_the_settings_limits_the_context(workplace: Workplace) -> None:
    talk(workplace, 50)
    workplace.checkout.write("vat.py", "vat_rate = 0.25\n")
    sha = workplace.checkout.commit("Add VAT", START + timedelta(minutes=60))
    workplace.home.mkdir()
    (workplace.home / "config.toml").write_text("[commits]\nwindow = 0\n")
    with workplace.history() as history:
        history.sync()
        entry = history.journal.write(sha, workplace.repository).entry
        assert entry is not None and "discussion" not in entry.sections
