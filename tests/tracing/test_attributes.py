"""The attributes of spans, without an SDK."""

from __future__ import annotations

import pytest

from dragoman import Usage
from dragoman.tracing.attributes import place, usage_attributes


@pytest.mark.parametrize(
    ("url", "address", "port"),
    [
        ("http://a.example/v1", "a.example", 80),
        ("https://a.example/v1", "a.example", 443),
        ("http://a.example:8080", "a.example", 8080),
        ("http://[::1]:1", "::1", 1),
        ("https://scripted.invalid", None, None),
        ("http://a.example:x", None, None),
        ("nothing", None, None),
        (None, None, None),
    ],
)
def test_the_server_of_a_request(url: str | None, address: str | None, port: int | None) -> None:
    """Its name and port, the scheme's own if the URL has none; nothing for a model in process."""
    found = place("chat", "openai", "m", url).attributes
    assert (found.get("server.address"), found.get("server.port")) == (address, port)


def test_every_kind_of_token_is_counted() -> None:
    """Cached and thinking tokens are attributes of their own, only where there are any."""
    usage = Usage(input=7, output=5, cache_read=3, cache_write=2, thinking=4)
    assert usage_attributes(usage) == {
        "gen_ai.usage.input_tokens": usage.total_input,
        "gen_ai.usage.output_tokens": usage.total_output,
        "gen_ai.usage.cache_read.input_tokens": 3,
        "gen_ai.usage.cache_creation.input_tokens": 2,
        "gen_ai.usage.reasoning.output_tokens": 4,
    }
    assert len(usage_attributes(Usage(input=7, output=5))) == 2
    assert usage_attributes(None) == {}
