"""Encoded requests and responses match the types of Google's SDK."""

from __future__ import annotations

import pytest
from hypothesis import given

import dragoman
from dragoman import Request
from dragoman.model.responses import Response
from dragoman.wire.gemini.codec import DIALECT
from dragoman.wire.target import Target
from tests.corpus import Corpus
from tests.wire.gemini.sdk import read_request, read_response
from tests.wire.gemini.targets import TARGETS
from tests.wire.recorded import bodies, runnable
from tests.wire.test_matrix_random import histories

OTHERS = [name for name in dragoman.dialects() if name != "gemini"]
# The recording truncated the image and has dots in its place.
CUT = "openai_responses/ai____fixtures__-openai-image-generation-tool.1~2.json"


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
@given(request=histories())
def test_random_histories_match_the_sdk_types(target: Target, request: Request) -> None:
    """Any edited history encodes to a request that the SDK's types accept."""
    read_request(DIALECT.encode_request(request, target).body)


@pytest.mark.corpus
@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
@pytest.mark.parametrize("source", OTHERS)
def test_recorded_requests_of_other_dialects_match_the_sdk_types(
    corpus: Corpus, source: str, target: Target
) -> None:
    """Recorded requests of other dialects are valid for the SDK and violate no rule."""
    wrong = []
    for body in bodies(corpus, source):
        request = body.decode()
        if not isinstance(request, Request) or not (request.messages or request.system):
            continue
        encoded = DIALECT.encode_request(request, target)
        found = DIALECT.check(encoded.body, target=target)
        wrong += [(body.recording.row.file, v.rule) for v in found if v.severity == "error"]
        try:
            read_request(encoded.body)
        except ValueError as error:
            wrong.append((body.recording.row.file, str(error)[:200]))
    assert wrong == []


@pytest.mark.corpus
@pytest.mark.parametrize("source", OTHERS)
def test_recorded_responses_of_other_dialects_match_the_sdk_types(
    corpus: Corpus, source: str
) -> None:
    """The SDK reads text and calls of another provider's response."""
    wrong = []
    for body in bodies(corpus, source):
        response = body.decode()
        if not isinstance(response, Response) or body.recording.row.file == CUT:
            continue
        read = read_response(DIALECT.encode_response(response).body)
        calls = [call.name for call in runnable(response.message)] if response.choices else []
        heard = "".join(
            part.text or ""
            for candidate in (read.candidates or [])[:1]
            for part in candidate.content.parts or []
            if not part.thought
        )
        if [call.name for call in read.function_calls or []] != calls or (
            response.text.replace("\n", "") != heard.replace("\n", "")
        ):
            wrong.append(body.recording.row.file)
    assert wrong == []
