"""The settings of requests that are stated as rows."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman import Request, dialect
from dragoman.model.jsontext import dumps_sorted
from dragoman.model.requests import ContextManagement, Sampling, Service
from dragoman.wire.anthropic.dialect import TARGET
from dragoman.wire.anthropic.settings import SETTINGS
from dragoman.wire.overlay import Overlay
from dragoman.wire.rows import FLAG, TEXT, WHOLE, Row, words
from dragoman.wire.settings_rows import Settings
from dragoman.wire.writing import Writing

LEAVES = st.sampled_from((None, True, 0, 7, 1 << 64, 0.5, "", "a", "low", "auto", "fast", "1h"))
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(("type", "value", "trigger", "edits", "odd")), inner)
    ),
    max_leaves=4,
)
HINT, BUDGET = {"type": "ephemeral", "ttl": "1h"}, {"type": "enabled", "budget_tokens": 2048}
COMPACT = {"edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 9}}]}
FORMAT = {"type": "json_schema", "schema": {"type": "object"}}
KNOWN = st.sampled_from((HINT, BUDGET, {"type": "adaptive"}, COMPACT, FORMAT, "standard_only"))
PATHS = [row.wire.split(".") for row in SETTINGS.rows]


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    """Bodies with some settings, of any type."""
    body: dict[str, Any] = {"messages": []}
    for first, *rest in draw(st.lists(st.sampled_from(PATHS), max_size=6)):
        value = draw(KNOWN | VALUES)
        if not rest:
            body[first] = value
        elif isinstance(body.setdefault(first, {}), dict):
            body[first][rest[0]] = value
    return body


@given(body=bodies())
def test_settings_come_back_as_they_came(body: dict[str, Any]) -> None:
    """What was read is written, and what could not be read is kept beside it."""
    speaker = dialect("anthropic")
    encoded = speaker.encode_request(speaker.decode_request(body), repair=False)
    assert dumps_sorted(encoded.body) == dumps_sorted(body)


def test_settings_without_a_row_are_lost() -> None:
    """Each is reported, unless its value means the same as none."""
    request = Request(
        sampling=Sampling(seed=0, choices=1, logprobs=False, presence_penalty=0, max_tokens=5),
        service=Service(user="u", safety_identifier="s", tier="flex", labels={"a": "b"}),
        context_management=ContextManagement(truncate=True),
    )
    writing = Writing(TARGET)
    body = SETTINGS.write(request, writing)
    assert body == {"max_tokens": 5, "metadata": {"user_id": "u"}}
    assert {loss.path for loss in writing.losses} == {
        "sampling.seed", "service.safety_identifier", "service.tier", "service.labels",
        "context_management.truncate",
    }  # fmt: skip


def test_the_first_row_takes_a_field() -> None:
    """A wire field is one of the model; a model field is written at the first place that can."""
    settings = Settings(
        Row("a", "service.user", TEXT), Row("a", "service.safety_identifier", TEXT),
        Row("b.c", "service.tier", words("low")), Row("d", "service.tier", TEXT),
        Row("e", "stream", FLAG), Row("f", "sampling.top_k", WHOLE),
    )  # fmt: skip
    found = settings.read({"a": "x", "b": {"c": "low"}, "d": "high", "e": True})
    assert found["service"] == Service(user="x", tier="low")
    assert found["stream"] is True
    request = Request(service=Service(safety_identifier="x", tier="high"))
    assert settings.write(request, Writing(TARGET)) == {"a": "x", "d": "high"}
    assert settings.places == {
        "a": "service.user", "b": {"c": "service.tier"}, "d": "service.tier", "e": "stream",
        "f": "sampling.top_k",
    }  # fmt: skip


def test_places_stand_in_both_spellings() -> None:
    """What the codec reads itself stands beside the rows, and names may be in snake case."""
    limit = Row("theConfig.maxTokens", "sampling.max_tokens", WHOLE)
    settings = Settings(limit, twins=True, beside={"theConfig.outputType": "output"})
    both = {"maxTokens": "sampling.max_tokens", "max_tokens": "sampling.max_tokens",
            "outputType": "output", "output_type": "output"}  # fmt: skip
    assert settings.places == {"theConfig": both, "the_config": both}
    overlay = Overlay("some")
    body = {"the_config": {"max_tokens": 5, "output_type": "x"}}
    assert settings.renamed(body, overlay) == {"theConfig": {"maxTokens": 5, "outputType": "x"}}
