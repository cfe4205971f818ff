"""Streams of the SDKs' events in any order: both paths agree, and nothing is dropped.

`make test` runs some of them, `make test-all` more.
"""

from __future__ import annotations

from collections import Counter

import pytest

from dragoman import Refusal, Text, Thinking, ToolCall
from dragoman.model.events import Event
from dragoman.model.responses import Response
from tests.sdk_types.spliced import spliced
from tests.wire.lane.test_templates import Told, check_same
from tests.wire.streamed import encoder_of, folded, read

_DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini", "ollama")
_SEEDS = [pytest.param(range(8), id="sample"),
          pytest.param(range(8, 400), id="more", marks=pytest.mark.slow)]  # fmt: skip


@pytest.mark.parametrize("seeds", _SEEDS)
@pytest.mark.parametrize("dialect", _DIALECTS)
def test_both_paths_decode_them_alike(dialect: str, seeds: range) -> None:
    """The fast path and the general one, in one chunk and byte by byte."""
    for seed in seeds:
        stream = spliced(dialect, seed)
        whole = check_same(dialect, [stream])
        singly = Told(dialect, [stream[n : n + 1] for n in range(len(stream))])
        assert bool(whole.errors) is bool(singly.errors), seed
        assert singly.response.identical(whole.response) or whole.errors, seed
        assert singly.is_complete is whole.is_complete, seed


@pytest.mark.parametrize("seeds", _SEEDS)
@pytest.mark.parametrize("dialect", _DIALECTS)
def test_nothing_is_dropped(dialect: str, seeds: range) -> None:
    """Encoded in their own dialect, they contain as much as before, or the loss is reported."""
    for seed in seeds:
        events = _events(dialect, spliced(dialect, seed))
        encoder = encoder_of(dialect)
        stream = b"".join([*map(encoder.feed, events), encoder.close()])
        missing = _amounts(folded(events)) - _amounts(read(dialect, stream).response)
        assert not missing or encoder.losses or encoder.repairs, (seed, missing)


def _events(dialect: str, stream: bytes) -> list[Event]:
    """The events of a stream; those before an error in its bytes come with the next call."""
    return [event for events in Told(dialect, [stream]).events for event in events]


def _amounts(response: Response) -> Counter[str]:
    """The size of a response: characters of each kind of text, calls by name, tokens."""
    found: Counter[str] = Counter()
    for choice in response.choices:
        for part in choice.message.parts:
            if isinstance(part, (Text, Thinking, Refusal)):
                found[f"{choice.index} {type(part).__name__}"] += len(part.text)
            elif isinstance(part, ToolCall):
                found[f"{choice.index} call {part.name}"] += 1
            else:
                found[f"{choice.index} {type(part).__name__}"] += 1
    if response.usage is not None:
        found["tokens"] = response.usage.total_input + response.usage.total_output
    return found
