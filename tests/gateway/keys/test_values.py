"""Records, amounts and patterns: what they reject, and that money is exact."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Usage
from dragoman.errors import Corrupt, InvalidInputError
from dragoman.gateway.keys import Budget, KeyRecord, Keys, Spent
from dragoman.gateway.keys.amounts import dollars_of, nanos_of, seconds_left
from dragoman.gateway.keys.patterns import matches, may_use
from dragoman.gateway.keys.store import decode_record, encode_record
from dragoman.gateway.keys.urls import store_at
from tests.gateway.keys.conftest import NOON

BAD: list[Any] = [
       Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("-Infinity"), Decimal(-1),
       Decimal("-1e-30"), Decimal("1e30"), 1.5, float("nan"), "5", None]  # fmt: skip


@given(st.integers(0, 10**15))
def test_nano_dollars_are_exact(nanos: int) -> None:
    """In both directions, in any decimal context."""
    with localcontext() as context:
        context.prec = 3
        assert nanos_of(dollars_of(nanos)) == nanos


@pytest.mark.parametrize(
    ("cost", "nanos"),
    [("0", 0), ("-0", 0), ("1e-9", 1), ("1e-10", 1), ("1e-999999", 1), ("0.0000000011", 2),
     ("1000000", 10**15), ("0." + "9" * 200, 10**9)],
)  # fmt: skip
def test_fractions_are_rounded_up(cost: str, nanos: int) -> None:
    """No sum of charges is less than what was spent."""
    assert nanos_of(Decimal(cost)) == nanos


@pytest.mark.parametrize("amount", BAD)
def test_invalid_amounts_are_rejected(amount: Any) -> None:
    """A negative charge would give money back."""
    with pytest.raises(InvalidInputError):
        nanos_of(amount)
    for kind in ("cost", "tokens"):
        with pytest.raises(InvalidInputError):
            Budget(kind, amount)


@pytest.mark.parametrize("amount", BAD)
async def test_hostile_amounts_change_nothing(amount: Any) -> None:
    """Neither at admission nor at settlement."""
    hostile: Any = amount
    async with Keys(store_at("memory:")) as keys:
        for budgets in ((), (Budget("cost", Decimal(1)), Budget("tokens", Decimal(10)))):
            key, _ = await keys.create(budgets=budgets)
            with pytest.raises(InvalidInputError):
                await keys.reserve(key, "m", hostile, Decimal(0))
            if budgets and amount is not None:
                with pytest.raises(InvalidInputError):
                    await keys.reserve(key, "m", 1, amount)
            held = await keys.reserve(key, "m", 1, Decimal(0))
            with pytest.raises(InvalidInputError):
                await keys.settle(held, Spent(tokens_in=hostile))
            if amount is not None:
                with pytest.raises(InvalidInputError):
                    await keys.settle(held, Spent(cost=amount))
            await keys.settle(held, Spent(tokens_in=2, cost=Decimal("0.5")))
        assert [(row.tokens_in, row.cost) for row in await keys.usage()] == [
            (2, Decimal("0.5")), (2, Decimal("0.5")),
        ]  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "x" * 201}, {"name": "a\nb"}, {"name": "\x1b[2J"}, {"models": ["a"]},
        {"models": ("",)}, {"models": ("a",) * 101}, {"requests_per_minute": 0},
        {"requests_per_minute": -1}, {"tokens_per_minute": 1.5}, {"max_concurrent": True},
        {"max_concurrent": 10**9}, {"budgets": (Budget("cost", Decimal(1)),) * 2},
    ],
)  # fmt: skip
def test_invalid_records_are_rejected(fields: dict[str, Any]) -> None:
    """Before they are stored."""
    with pytest.raises(InvalidInputError):
        KeyRecord(id="a", **fields)


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"null", b'{"id": 1}', b"\xff", b'{"id":"a","name":"\\n"}']
)
def test_damaged_records_are_reported(text: bytes) -> None:
    """Without their text."""
    with pytest.raises(Corrupt, match="create another"):
        decode_record(text, None)


def test_records_round_trip() -> None:
    """Amounts exactly."""
    record = KeyRecord(id="a", budgets=(Budget("cost", Decimal("0.10"), "day"),), expires_at=1.5)
    assert decode_record(encode_record(record), None) == record
    assert decode_record(encode_record(record), 2.0) == msgspec.structs.replace(
        record, revoked_at=2.0
    )


def test_usage_is_split_into_input_and_output() -> None:
    """Cached tokens are input, thinking is output."""
    usage = Usage(input=1, cache_read=2, cache_write=4, output=8, thinking=16)
    assert Spent.of(usage, None, model="m", route="r") == Spent(
        tokens_in=7, tokens_out=24, tokens_cached=2, tokens_reasoning=16, model="m", route="r"
    )


@pytest.mark.parametrize("count", [-1, 10**12 + 1, 2**63, 2**70, 10**400])
def test_absurd_usage_is_charged_as_the_nearest_amount(count: int) -> None:
    """A server may report any number; a request that can't be charged would stay reserved."""
    usage = Usage(input=count, output=count, cache_read=count, thinking=count)
    spent = Spent.of(usage, Decimal(count), model="m", route="r")
    most = 0 if count < 0 else 10**12
    assert {spent.tokens_in, spent.tokens_out, spent.tokens_cached} == {most}
    assert spent.cost == (0 if count < 0 else 1_000_000)


@pytest.mark.parametrize(
    ("pattern", "text", "is_match"),
    [
        ("gpt-5", "gpt-5", True), ("gpt-5", "gpt-5-mini", False), ("gpt-*", "gpt-5", True),
        ("*", "", True), ("*", "anything", True), ("*mini", "gpt-5-mini", True),
        ("a*a", "a", False), ("a*a", "aa", True), ("a*b*c", "a-b-b-c", True),
        ("a*b*c", "a-c-b", False), ("g.t", "gpt", False), ("**", "x", True), ("[a]", "a", False),
    ],
)  # fmt: skip
def test_patterns(pattern: str, text: str, is_match: bool) -> None:
    """Only `*` is special."""
    assert matches(pattern, text) is is_match


def test_hostile_patterns_and_names_are_fast() -> None:
    """There is no regular expression to blow up."""
    assert not matches("*a" * 50 + "b", "a" * 256)
    assert not may_use(("*",), "x" * 10_000_000)
    assert may_use((), "x" * 10_000_000)


def test_periods_end_at_midnight_utc() -> None:
    """Of the next day, or of the next month's first."""
    assert seconds_left("day", NOON) == 43_200
    assert seconds_left("month", NOON) == 13.5 * 86_400
    assert seconds_left("total", NOON) is None


def test_tokens_billed_besides_the_counts_are_spent() -> None:
    """Anthropic's compaction is in no total, and counts against a budget of tokens all the same."""
    details = {
        "compaction_input": 50, "compaction_cache_read": 4, "compaction_cache_write": 2,
        "compaction_output": 5, "other_models": 40, "input_text": 7,
    }  # fmt: skip
    spent = Spent.of(Usage(input=7, output=3, details=details), None, model="m", route="r")
    assert (spent.tokens_in, spent.tokens_out, spent.tokens_cached) == (103, 8, 0)
