"""Every front against llm-comply, which checks answers against the vendors' specifications."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from dragoman.model.parts import Text, Thinking
from dragoman.model.tools import ToolCall
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.dialect import dialect
from tests.gateway.answers import KINDS, SAID, Provider, body_of, frames_of, is_streaming, said
from tests.gateway.matrix.failing import failure
from tests.gateway.test_chat import gateway_to

pytest.importorskip("llm_comply", reason="llm-comply is not installed (extra `peers`)")

FORMATS = {
    "anthropic": ("/v1", "anthropic.json"),
    "openai-chat": ("/v1", "openai_chat.json"),
    "open-responses": ("/v1", "openresponses.json"),
    "google-genai": ("", None),
}
"""The path of each, and its specification in the package."""
CALL = ToolCall.create("call_1", "get_weather", {"location": "San Francisco"})


MODELS = {"anthropic": "claude-sonnet-4-6"}
"""What is asked for, so that no test is skipped for its model; elsewhere `gpt-5`."""


class Strict(Provider):
    """A server that calls tools, thinks if asked to, and refuses what is not valid."""

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Answer as the request asks."""
        body = json.loads(await request.read() or b"{}")
        asked = dialect(self.name).decode_request(body, path=request.path_qs)
        if not (asked.model and asked.messages and 0 <= (asked.sampling.temperature or 0) <= 2):
            refusal = failure(self.name, 400)
            return web.Response(body=refusal.data, status=400, content_type="application/json")
        parts: list[Any] = [Text(SAID)]
        finish = FinishReason.STOP
        if asked.thinking is not None:
            parts.insert(0, Thinking("Let me see."))
        if asked.tools:
            parts, finish = [CALL], FinishReason.TOOL_CALLS
        usage = Usage(input=11, output=7, thinking=3)
        response = said(*parts, finish=finish, usage=usage)
        if not is_streaming(self.name, request, body):
            answer = body_of(self.name, response)
            return web.Response(body=answer, content_type="application/json")
        return await self.stream(request, frames_of(self.name, response, body))


def _cases() -> Iterator[object]:
    """Each front with every provider; its own, whose answers pass unchanged, if it is Chat's."""
    for form in FORMATS:
        own = {"open-responses": "openai-responses", "google-genai": "gemini"}.get(form, form)
        for back in KINDS:
            if back != own or back == "openai-chat":
                yield pytest.param(form, back, id=f"{form}-{back}")


@pytest.mark.filterwarnings("ignore:jsonschema.RefResolver:DeprecationWarning")
@pytest.mark.parametrize(("form", "back"), [*_cases()])
def test_every_test_of_llm_comply_passes(form: str, back: str) -> None:
    """With fields that the newest specifications require, whole and streamed; none is skipped."""
    import llm_comply
    from llm_comply.config import ComplianceConfig
    from llm_comply.runner import TestRunner
    from llm_comply.schema import SpecLoader
    from llm_comply.tests import get_tests

    path, file = FORMATS[form]
    spec = SpecLoader(file and str(Path(llm_comply.__file__).parent / "specs" / file))
    with gateway_to(Strict(back)) as (serving, _):
        config = ComplianceConfig(f"{serving.url}{path}", "key", MODELS.get(form, "gpt-5"))
        results = TestRunner(config, get_tests(form), spec).run_all().results
    failed = {each.id: each.errors for each in results if each.status.value != "passed"}
    assert failed == {}
    assert len(results) > 5
