"""Every front against llm-comply, which checks answers against the vendors' specifications."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from dragoman.model.parts import Text, Thinking
from dragoman.model.tools import ToolCall
from dragoman.model.usage import FinishReason
from tests.gateway.answers import SAID, Provider, body_of, frames_of, said
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


class Strict(Provider):
    """A Chat server that calls tools, thinks if asked to, and refuses what is not valid."""

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Answer as the request asks."""
        body = json.loads(await request.read() or b"{}")
        if problem := _problem(body):
            refusal = {"message": problem, "type": "invalid_request_error", "code": None}
            return web.json_response({"error": refusal}, status=400)
        parts: list[Any] = [Text(SAID)]
        finish = FinishReason.STOP
        if body.get("reasoning_effort"):
            parts.insert(0, Thinking("Let me see."))
        if body.get("tools"):
            parts, finish = [CALL], FinishReason.TOOL_CALLS
        response = said(*parts, finish=finish)
        if not body.get("stream"):
            answer = body_of(self.name, response)
            return web.Response(body=answer, content_type="application/json")
        return await self.stream(request, frames_of(self.name, response, body))


def _problem(body: Any) -> str | None:
    if not body.get("model"):
        return "model is required"
    if not body.get("messages"):
        return "messages must not be empty"
    if not 0 <= (body.get("temperature") or 0) <= 2:
        return "temperature must be between 0 and 2"
    return None


@pytest.mark.filterwarnings("ignore:jsonschema.RefResolver:DeprecationWarning")
@pytest.mark.parametrize("form", FORMATS)
def test_every_test_of_llm_comply_passes(form: str) -> None:
    """With fields that the newest specifications require, whole and streamed."""
    import llm_comply
    from llm_comply.config import ComplianceConfig
    from llm_comply.runner import TestRunner
    from llm_comply.schema import SpecLoader
    from llm_comply.tests import get_tests

    path, file = FORMATS[form]
    spec = SpecLoader(file and str(Path(llm_comply.__file__).parent / "specs" / file))
    with gateway_to(Strict("openai-chat")) as (serving, _):
        config = ComplianceConfig(f"{serving.url}{path}", "key", "gpt-5")
        results = TestRunner(config, get_tests(form), spec).run_all().results
    failed = {each.id: each.errors for each in results if each.status.value == "failed"}
    assert failed == {}
    assert len(results) > 5
