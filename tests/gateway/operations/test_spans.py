"""Spans of requests: parents from the client, attributes by the conventions, passed upstream."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from aiohttp import web
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from tests.gateway.operations.workers import answering, ask, chat, threaded
from tests.gateway.running import place, routed, upstream

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """An exporter that collects spans."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield exporter
    provider.shutdown()


def test_a_request_is_a_span(spans: InMemorySpanExporter) -> None:
    """The client's trace is continued to the provider."""
    seen: list[str | None] = []

    async def noting(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers.get("traceparent"))
        return await answering(request)

    with upstream(noting) as url:
        config = routed(place("lab", "openai-compatible", url), log="off")
        with threaded(config) as serving:
            asked = {**chat(), "max_tokens": 5}
            assert (
                ask(serving.port, "/v1/messages", asked, headers={"traceparent": PARENT})[0] == 200
            )
            assert ask(serving.port, "/nothing")[0] == 404
    served, unknown = spans.get_finished_spans()
    assert (served.name, served.kind) == ("chat m", SpanKind.SERVER)
    assert served.parent is not None
    assert f"{served.parent.trace_id:032x}" == PARENT.split("-")[1]
    assert served.context is not None
    assert seen == [f"00-{PARENT.split('-')[1]}-{served.context.span_id:016x}-01"]
    attributes = dict(served.attributes or {})
    assert attributes["http.request.method"] == "POST"
    assert attributes["url.path"] == "/v1/messages"
    assert attributes["http.response.status_code"] == 200
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.request.model"] == "m"
    assert attributes["gen_ai.usage.input_tokens"] == 7
    assert attributes["dragoman.front"] == "anthropic"
    assert "Hi" not in str(attributes)
    assert unknown.status.status_code == StatusCode.UNSET  # the client's own error
    assert dict(unknown.attributes or {})["error.type"] == "InvalidRequest"


def test_an_invalid_parent_is_ignored(spans: InMemorySpanExporter) -> None:
    """An invalid header starts a new trace."""
    with upstream(answering) as url:
        config = routed(place("lab", "openai-compatible", url), log="off")
        with threaded(config) as serving:
            assert ask(serving.port, headers={"traceparent": "00-\xff-zz"})[0] == 200
    (served,) = spans.get_finished_spans()
    assert served.parent is None
