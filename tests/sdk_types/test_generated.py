"""Bodies made of the vendors' own types: each variant and each field, in a whole body.

Nobody chose them. `make test` looks at a sample, `make test-all` at all of them.
"""

from __future__ import annotations

import re

import pytest

import dragoman
from tests.sdk_types.bodies import SOURCES, Source
from tests.sdk_types.checks import change, repair, silent, stream_problems
from tests.sdk_types.streams import STREAMS, StreamSource

_SAMPLE = 7  # of so many bodies one, in `make test`
_SAMPLE_OF_TRANSLATIONS = 29
_EVERY = [pytest.param(_SAMPLE, id="sample"),
          pytest.param(1, id="all", marks=pytest.mark.slow)]  # fmt: skip
_EVERY_TRANSLATION = [pytest.param(_SAMPLE_OF_TRANSLATIONS, id="sample"),
                      pytest.param(1, id="all", marks=pytest.mark.slow)]  # fmt: skip
_EVERY_STREAM = [pytest.param(97, id="sample"),
                 pytest.param(1, id="all", marks=pytest.mark.slow)]  # fmt: skip
# Pieces of Gemini's arguments that nobody sends: several values at once, or a path that is none.
# Its types don't say that one of the values is meant.
_KNOWN = re.compile(r"arguments has no place|(numberValue|jsonPath) at nowhere")
# Whose event it is, where several agents answer at once: the items say so, too, and are kept.
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
    """Read and written again in their dialect, they are equal, and nothing is reported.

    Set into whole bodies, and bare as the types have them: nobody knows that a host refuses those.
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
    """Unless `check` finds an error in them; and then what was changed is reported."""
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
    """In another dialect every leaf is found again, or a loss or a repair names its part."""
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
    """Written again, an SDK's types read them and they say the same; elsewhere nothing is lost."""
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
