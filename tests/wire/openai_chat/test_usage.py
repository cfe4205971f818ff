"""Token counts of Chat responses."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman.wire.openai_chat.response import decode_any_usage, decode_usage, encode_usage

ODD: st.SearchStrategy[Any] = st.sampled_from([None, True, -1, 1.0, "3", 2**70, [], {}])
COUNTS = st.integers(0, 100) | st.integers(0, 100) | ODD
FIELDS = ("prompt_tokens", "completion_tokens", "total_tokens")


@given(
    st.fixed_dictionaries(
        dict.fromkeys(FIELDS, COUNTS), optional={"prompt_tokens_details": ODD, "odd": ODD}
    )
)
def test_plain_usage_is_decoded_like_any_other(wire: dict[str, Any]) -> None:
    """The fast path for usage without details gives the same value and encodes the same."""
    plain, general = decode_usage(wire), decode_any_usage(wire)
    assert (plain, plain.extras, plain.reported_total) == (
        general, general.extras, general.reported_total,
    )  # fmt: skip
    assert list(encode_usage(plain).items()) == list(encode_usage(general).items())
