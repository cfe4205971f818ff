"""Bodies generated from the SDKs' types: each variant and each field, in a complete body.

`make test` runs a sample, `make test-all` runs all of them.
"""

from __future__ import annotations

import re

import pytest

import dragoman
from tests.sdk_types.bodies import SOURCES, Source
from tests.sdk_types.checks import change, repair, silent, stream_problems
from tests.sdk_types.streams import STREAMS, StreamSource

_SAMPLE = 7  # `make test` uses every so many bodies
_SAMPLE_OF_TRANSLATIONS = 29
_EVERY = [pytest.param(_SAMPLE, id="sample"),
          pytest.param(1, id="all", marks=pytest.mark.slow)]  # fmt: skip
_EVERY_TRANSLATION = [pytest.param(_SAMPLE_OF_TRANSLATIONS, id="sample"),
                      pytest.param(1, id="all", marks=pytest.mark.slow)]  # fmt: skip
_EVERY_STREAM = [pytest.param(97, id="sample"),
                 pytest.param(1, id="all", marks=pytest.mark.slow)]  # fmt: skip
# Pieces of Gemini's arguments that are never sent: several values at once, or a path without a
# value. Its types don't say that exactly one is required.
_KNOWN = re.compile(r"arguments has no place|(numberValue|jsonPath) at nowhere")
# The agent of an event, if several agents respond at once. The items have it too, and are kept.
_OWNED = re.compile(r"\bagent\b.*: reported: an unsupported event|^\d+:maximal: reported")


def _name(source: Source) -> str:
    return f"{source.name}-{source.kind}"


def _installed(source: Source) -> Source:
    if not source.is_installed:
        pytest.skip(f"{source.sdk} is not installed; `make test-all` does it")
    return source


@pytest.mark.parametrize("step", _EVERY)
@pytest.mark.parametrize("source", SOURCES, ids=_name)
def test_bodies_come_back_as_they_came(source: Source, step: int) -> None:
    """A round trip in their own dialect gives equal bodies, without a report.

    Both inside complete bodies and bare, since no host is known to reject the bare ones.
    """
    problems = {
        f"{body.case}: {problem}"
        for body in _installed(source).bodies(step)
        for wire in (body.wire, body.bare)
        if (problem := change(body, wire)) is not None
    }
    assert problems == set()


@pytest.mark.parametrize("step", _EVERY)
@pytest.mark.parametrize("source", [each for each in SOURCES if each.kind == "request"], ids=_name)
def test_requests_go_to_their_vendor_as_they_came(source: Source, step: int) -> None:
    """Unless `check` finds an error in them; then every change is reported."""
    problems = {
        f"{body.case}: {problem}"
        for body in _installed(source).bodies(step)
        for wire in (body.wire, body.bare)
        if (problem := repair(body, wire)) is not None
    }
    assert problems == set()


@pytest.mark.parametrize("step", _EVERY_TRANSLATION)
@pytest.mark.parametrize("target", dragoman.dialects())
@pytest.mark.parametrize("source", SOURCES, ids=_name)
def test_nothing_is_lost_silently(source: Source, target: str, step: int) -> None:
    """In another dialect every value is present, or a loss or a repair names its part."""
    if target == source.dialect:
        return
    problems = {
        f"{body.case}: {missing}"
        for body in _installed(source).bodies(step)
        for missing in silent(body, target)
    }
    assert problems == set()


@pytest.mark.parametrize("step", _EVERY_STREAM)
@pytest.mark.parametrize("target", dragoman.dialects())
@pytest.mark.parametrize("source", STREAMS, ids=lambda source: source.source.name)
def test_streams_are_read_by_their_sdks(source: StreamSource, target: str, step: int) -> None:
    """Encoded again, the SDK's types accept them and they are equal; elsewhere nothing is lost."""
    _installed(source.source)
    problems = {
        f"{stream.body.case}: {problem}"
        for stream in source.streams(step)
        for problem in stream_problems(stream, source, target)
        if not _KNOWN.search(problem)
        and not (
            source.source.name == "openai.beta" and _OWNED.search(f"{stream.body.case}: {problem}")
        )
    }
    assert problems == set()
