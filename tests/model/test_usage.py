"""Token counts that add up, and finish reasons."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from dragoman.errors import InvalidInputError
from dragoman.model.usage import FinishReason, Usage
from tests.model import strategies as some

BUCKETS = ("input", "output", "cache_read", "cache_write", "thinking")


def test_every_token_is_in_one_bucket() -> None:
    """Totals are sums of disjoint buckets, as providers count them."""
    usage = Usage(input=1, output=2, cache_read=10, cache_write=100, thinking=1000)
    assert usage.total_input == 111
    assert usage.total_output == 1002
    assert usage.total == 1113


def test_a_total_is_kept_where_given_and_computed_where_absent() -> None:
    """The provider's own word wins over our sum."""
    assert Usage(input=1, output=2).total == 3
    assert Usage(input=1, output=2, reported_total=7).total == 7
    assert Usage(reported_total=0, input=1).total == 0


@given(some.usages, some.usages)
def test_usages_add_up(left: Usage, right: Usage) -> None:
    """Each bucket and the total of a sum are the sums; the order does not matter."""
    both = left + right
    for name in (*BUCKETS, "total_input", "total_output", "total"):
        assert getattr(both, name) == getattr(left, name) + getattr(right, name)
    assert both == right + left


@given(some.usages)
def test_nothing_is_the_neutral_element(usage: Usage) -> None:
    """Adding nothing changes nothing that was counted."""
    assert usage + Usage() == usage
    assert sum([usage, usage], Usage()) == usage + usage


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ({}, {}, {}),
        ({"audio": 3}, {}, {"audio": 3}),
        ({}, {"audio": 4}, {"audio": 4}),
        ({"audio": 3, "image": 1}, {"audio": 4}, {"audio": 7, "image": 1}),
    ],
)
def test_details_add_up(one: dict[str, int], other: dict[str, int], both: dict[str, int]) -> None:
    """Each by its name, also where only one of two has any."""
    assert (Usage(details=one) + Usage(details=other)).details == both


def test_usage_adds_to_usage_only() -> None:
    """A number is not a usage."""
    with pytest.raises(TypeError):
        _ = Usage() + 1  # type: ignore[operator]


@pytest.mark.parametrize("field", BUCKETS)
@pytest.mark.parametrize("value", [1.5, "1", None, True])
def test_counts_are_integers(field: str, value: Any) -> None:
    """Anything else is refused by name."""
    with pytest.raises(InvalidInputError, match=f"Usage.{field} must be an integer"):
        Usage(**{field: value})


def test_a_reported_total_is_an_integer() -> None:
    """It may be absent, but not a text."""
    with pytest.raises(InvalidInputError, match=r"Usage\.reported_total must be int"):
        Usage(reported_total="1")  # type: ignore[arg-type]


@pytest.mark.parametrize("reason", FinishReason)
def test_cut_off_turns_are_known(reason: FinishReason) -> None:
    """The calls of a turn that ended early must not be run."""
    cut_off = {"length", "context_full", "malformed_call", "content_filter", "refusal",
               "cancelled", "error"}  # fmt: skip
    assert reason.is_cut_off is (reason.value in cut_off)


def test_repr_shows_counts() -> None:
    """Counts are no secret."""
    assert repr(Usage(input=3, output=2, thinking=1)) == "Usage(3 in, 3 out)"
