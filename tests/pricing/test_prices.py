"""Prices: found by any spelling of a model's name, linear, additive, and never made up."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.errors import UsageError
from backscroll.model.statistics import PROMPT_SIZES, Consumption, Tokens
from backscroll.pricing.prices import bill_of, built_in, cost_of, plain_name, with_own

COUNTS = st.integers(0, 10**9)
TOKENS = st.builds(
    Tokens, input=COUNTS, output=COUNTS, cache_write=COUNTS, cache_write_1h=COUNTS, cache_read=COUNTS
)
MODELS = st.sampled_from(["claude-opus-4-5", "claude-sonnet-4-5", "gpt-5", "gemini-2.5-pro", "composer-1"])


def usd(model: str, tokens: Tokens, **more: object) -> float:
    cost = cost_of(Consumption(model=model, tokens=tokens, **more), built_in())  # type: ignore[arg-type]
    assert cost is not None
    return cost.usd


@given(model=MODELS, one=TOKENS, other=TOKENS)
def test_what_two_responses_cost_is_what_each_costs(model: str, one: Tokens, other: Tokens) -> None:
    assert usd(model, one + other) == pytest.approx(usd(model, one) + usd(model, other))


@given(model=MODELS, tokens=TOKENS, times=st.integers(0, 50))
def test_so_many_times_the_tokens_cost_so_many_times_as_much(model: str, tokens: Tokens, times: int) -> None:
    many = Tokens()
    for _ in range(times):
        many += tokens
    assert usd(model, many) == pytest.approx(times * usd(model, tokens))


def test_each_kind_of_token_has_its_own_price() -> None:
    million = 1_000_000
    kinds = ("input", "output", "cache_write", "cache_write_1h", "cache_read")
    prices = [usd("claude-opus-4-5-20251101", Tokens(**{kind: million})) for kind in kinds]
    assert prices == [5.0, 25.0, 6.25, 10.0, 0.5]


@pytest.mark.parametrize(
    ("spelled", "plain"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("anthropic/claude-opus-4.5", "claude-opus-4-5"),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4"),
        ("arn:aws:bedrock:eu-west-1:1:profile/eu.anthropic.claude-opus-4-1-20250805-v1:0", "claude-opus-4-1"),
        ("claude-opus-4@20250514", "claude-opus-4"),
        ("claude-3-5-haiku-latest", "claude-haiku-3-5"),
        ("claude-4.5-sonnet", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929[1m]", "claude-sonnet-4-5"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gemini-2.5-pro-preview-05-06", "gemini-2-5-pro"),
    ],
)  # fmt: skip
def test_a_model_has_one_name_however_it_is_spelled(spelled: str, plain: str) -> None:
    assert plain_name(spelled) == plain
    assert spelled in built_in()


@given(st.text())
def test_any_name_of_a_model_can_be_asked_for(name: str) -> None:
    built_in().find(name, None, None)
    assert plain_name(plain_name(name)) is not None


@pytest.mark.parametrize(
    ("spelled", "like"),
    [
        ("claude-4.5-opus-high-thinking", "claude-opus-4-5"),
        ("gpt-5-high", "gpt-5"),
        ("gpt-5.1-codex-max-xhigh", "gpt-5.1-codex-max"),
        ("sonnet-4.5-thinking", "claude-sonnet-4-5"),
    ],
)
def test_how_hard_a_model_thinks_does_not_change_its_price(spelled: str, like: str) -> None:
    assert built_in().find(spelled, None, None) == built_in().find(like, None, None)


def test_the_fast_class_costs_more_and_one_without_a_price_has_none() -> None:
    million = Tokens(input=1_000_000)
    assert usd("claude-opus-4-6", million, speed="fast", at=datetime(2026, 5, 1, tzinfo=UTC)) == 30.0
    assert usd("gpt-5-fast", million) == 2 * usd("gpt-5", million)
    assert cost_of(Consumption(model="claude-haiku-4-5", speed="fast", tokens=million), built_in()) is None


def test_a_long_prompt_costs_more_all_of_it() -> None:
    tokens = Tokens(input=150_000, output=1000, cache_read=100_000)
    short = usd("claude-sonnet-4-5", tokens, prompt=200_000)
    assert short == pytest.approx(0.45 + 0.015 + 0.03)
    assert usd("claude-sonnet-4-5", tokens, prompt=200_001) == pytest.approx(0.9 + 0.0225 + 0.06)


def test_a_price_is_that_of_its_day() -> None:
    million = Tokens(input=1_000_000)
    before, after = datetime(2026, 7, 29, 23, tzinfo=UTC), datetime(2026, 7, 30, tzinfo=UTC)
    assert usd("gpt-5.6-luna", million, at=before) == 1.0
    assert usd("gpt-5.6-luna", million, at=after) == usd("gpt-5.6-luna", million) == 0.2


def test_a_model_without_a_price_is_named_and_not_free() -> None:
    consumed = [
        Consumption(model="cursor-small", tokens=Tokens(input=70)),
        Consumption(model="cursor-small", tokens=Tokens(output=30)),
        Consumption(model=None, tokens=Tokens(input=1)),
        Consumption(model="claude-opus-4-5", tokens=Tokens(input=1_000_000)),
        Consumption(model="<synthetic>", tokens=Tokens()),
    ]
    bill = bill_of(consumed, built_in())
    assert bill.usd == 5.0
    assert [(one.model, one.responses, one.tokens) for one in bill.unpriced] == [
        ("cursor-small", 2, 100),
        (None, 1, 1),
    ]
    assert bill_of(consumed[:3], built_in()).usd is None


def test_every_price_of_the_table_is_dated_and_says_where_it_is_from() -> None:
    table = built_in()
    assert table.checked >= date(2026, 11, 16)
    for price in table.every():
        assert price.source.startswith("https://")
        assert 0 < price.cache_read <= price.input <= price.cache_write <= price.cache_write_1h
        assert price.output > price.input
        assert price.long_over is None or price.long_over in PROMPT_SIZES


OWN = """
checked = 2026-12-24

[[price]]
models = ["cursor-small", "gpt-5"]
input = 0.5
output = 2

[[price]]
models = ["cursor-small"]
from = 2026-06-01
input = 1
output = 4
cache_read = 0.1
fast = 3
long = { over = 200_000, input = 2.0, output = 1.5 }
"""


def test_a_table_of_ones_own_adds_models_and_takes_the_place_of_prices(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(OWN, encoding="utf-8")
    table = with_own(tmp_path / "prices.toml")
    assert table.checked == date(2026, 12, 24)
    (gpt, _) = table.find("gpt-5", None, None) or (None, 0)
    assert gpt is not None
    assert (gpt.input, gpt.cache_write, gpt.cache_read) == (0.5, 0.5, 0.5)
    early = table.find("cursor-small", None, datetime(2026, 5, 1, tzinfo=UTC))
    late = table.find("cursor-small", "fast", datetime(2026, 7, 1, tzinfo=UTC))
    assert early is not None
    assert late is not None
    assert (early[0].input, late[0].input, late[1]) == (0.5, 1.0, 3.0)
    assert "claude-opus-4-5" in table


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("price = [", "is not valid TOML"),
        ("", "checked"),
        ("checked = 2026-01-01\n[[price]]\ninput = 1\noutput = 1", "has no models"),
        ('checked = 2026-01-01\n[[price]]\nmodels = ["a"]\ninput = 1', "has no .output"),
        ('checked = 2026-01-01\n[[price]]\nmodels = ["a"]\ninput = -1\noutput = 1', "number of dollars"),
        ('checked = 2026-01-01\n[[price]]\nmodels = ["a"]\ninput = 1\noutput = 1\ncache = 2', "'cache'"),
        (
            'checked = 2026-01-01\n[[price]]\nmodels = ["a"]\ninput = 1\noutput = 1\nlong = { over = 7 }',
            "long.over must be one of",
        ),
    ],
)
def test_a_table_that_cannot_be_understood_says_why(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=said) as caught:
        with_own(file)
    assert str(file) in str(caught.value)


def test_a_table_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        with_own(tmp_path / "prices.toml")


def test_a_table_that_cannot_be_read_says_why_in_words(tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    for name, said in (("missing.toml", "cannot be read: No such file"), ("bytes.toml", "not UTF-8")):
        with pytest.raises(UsageError, match=said) as told:
            with_own(tmp_path / name)
        assert "Errno" not in str(told.value)
        assert "codec" not in str(told.value)
