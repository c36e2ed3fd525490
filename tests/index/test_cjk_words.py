"""Weights of character pairs in Chinese, Japanese and Korean queries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.index.analysis import bigrams
from backscroll.index.languages import weighted_pairs
from backscroll.index.store import Index
from tests.index.documents import found, message, write


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("为什么支付回调失败", ["支付", "付回", "回调", "调失", "失败"]),
        ("予約の一覧が遅かった", ["予約", "一覧"]),
        ("어떻게결제취소했나요", ["결제", "제취", "취소"]),
    ],
)
def test_pairs_of_function_words_have_a_lower_weight(question: str, subject: list[str]) -> None:
    assert [pair for pair, weight in weighted_pairs(question) if weight == 1.0] == subject


@given(st.text("为什么支付回调失败予約の一覧が遅어떻게결제", min_size=1))
def test_every_pair_of_a_run_has_a_weight(run: str) -> None:
    assert [pair for pair, _ in weighted_pairs(run)] == (bigrams(run)[:-1] or [run])


def test_a_question_finds_the_session_about_its_subject(index: Index) -> None:
    others = [message("为什么我们是这样做的, 这是什么问题, 为什么会这样", session) for session in range(2, 5)]
    english = [message("a session about something else", session) for session in range(5, 50)]
    write(index, [message("回调签名校验不通过", 1), *others, *english])
    assert found(index, "为什么回调失败")[0] == 1
