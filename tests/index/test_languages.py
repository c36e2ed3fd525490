"""Languages of queries: detection, stop words and inflections."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.index.highlights import find_spans
from backscroll.index.languages import LATIN_LANGUAGES, RUSSIAN, _endings, inflections
from backscroll.index.query import Word, parse
from backscroll.index.store import Index
from tests.index.documents import found, message, write


@pytest.mark.parametrize(
    ("query", "language"),
    [
        ("why did we drop the redis cache", "english"),
        ("docker compose", "english"),
        ("how do die rolls work in the game", "english"),
        ("como resolvemos o problema de conexão do banco", "portuguese"),
        ("por que o login falha", "portuguese"),
        ("¿por qué los clientes recibían dos correos?", "spanish"),
        ("warum fehlen die Nummern in der Rechnung", "german"),
        ("comment a-t-on corrigé les factures du client", "french"),
        ("perché la build non funziona con il proxy", "italian"),
        ("waarom faalt de test op het netwerk", "dutch"),
        ("почему падали тесты", "russian"),
        ("утечка соединений в postgres", "russian"),
    ],
)
def test_the_language_of_a_question_is_detected(query: str, language: str) -> None:
    assert parse(query).language == language


def test_the_stop_words_of_the_language_are_optional() -> None:
    query = parse("qu'est-ce qui empêchait le service d'ouvrir une connexion à la base ?")
    words = [clause.any_of[0] for clause in query.content_words]
    assert words == [Word("empêchait"), Word("service"), Word("d'ouvrir"), Word("connexion"), Word("base")]


def test_a_stop_word_of_another_language_is_a_word_in_english() -> None:
    query = parse("die process in the bin folder")
    assert [clause.any_of[0] for clause in query.content_words] == [
        Word("die"), Word("process"), Word("bin"), Word("folder"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("соединение", "пул соединений исчерпан"),
        ("медленный отчёт", "отчеты формируются медленно"),
        ("wie wurden die Rechnungen gedruckt", "Die Rechnung wird mit dem alten Drucker gedruckt."),
        ("como corrigimos a conexão do banco", "As conexões com o banco foram corrigidas."),
        ("por qué las facturas están duplicadas", "La factura se envía duplicada."),
        (
            "pourquoi les factures sont envoyées deux fois",
            "La facture est envoyée une fois de trop, soit deux fois.",
        ),
    ],
)
def test_other_forms_of_a_word_are_found(index: Index, query: str, text: str) -> None:
    write(index, [message(text, 1), message("nothing of the kind", 2)])
    assert found(index, query) == [1]


def test_other_forms_of_a_word_are_highlighted() -> None:
    text = "пул соединений исчерпан"
    spans = find_spans(text, parse("соединение"), with_inflections=True)
    assert [text[span.start : span.end] for span in spans] == ["соединений"]


def test_a_word_as_typed_is_ranked_before_its_other_forms(index: Index) -> None:
    write(index, [message("утечки памяти", 1), message("утечка памяти", 2)])
    assert found(index, "утечка") == [2]


def test_english_terms_are_inflected_in_other_languages() -> None:
    assert "deployments" in inflections("deployment", "portuguese")


def test_every_language_has_endings() -> None:
    assert _endings().keys() == {RUSSIAN, *LATIN_LANGUAGES}


@given(word=st.text(min_size=1), language=st.sampled_from(["english", RUSSIAN, *LATIN_LANGUAGES]))
def test_the_first_form_of_any_word_is_the_word(word: str, language: str) -> None:
    assert inflections(word, language)[0] == word


def test_unknown_words_show_the_language_of_a_query(index: Index) -> None:
    write(index, [message("Die Schriften im Bildvergleich waren verschieden."), message("a font test", 2)])
    assert index.with_language(parse("bildvergleich schrift")).language == "german"
    assert index.with_language(parse("font test")).language == "english"
    assert index.with_language(parse("the schrift")).language == "english"
    assert index.with_language(parse("unheard")).language == "english"
