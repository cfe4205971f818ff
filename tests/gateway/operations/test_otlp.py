"""Spans are exported by OTLP, as an operator's collector receives them."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web

from tests.gateway.operations.test_processes import written
from tests.gateway.operations.workers import answering, ask, chat, process
from tests.gateway.running import upstream

pytestmark = pytest.mark.slow  # starts a server
pytest.importorskip(
    "opentelemetry.exporter.otlp.proto.http.trace_exporter", reason="no OTLP exporter is installed"
)


def test_a_collector_receives_the_span_of_a_request(tmp_path: Path) -> None:
    """The standard variables are enough; pending spans are sent when the server stops."""
    received: list[bytes] = []

    async def collect(request: web.Request) -> web.StreamResponse:
        received.append(await request.read())
        return web.Response(content_type="application/x-protobuf")

    with upstream(collect) as collector, upstream(answering) as url:
        more = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector, "OTEL_SERVICE_NAME": "gateway"}
        with process(tmp_path, written(url), env=more) as started:
            assert ask(started.port, body=chat())[0] == 200
    spans = b"".join(received)
    for name in (b"chat m", b"gen_ai.operation.name", b"dragoman.front", b"openai-chat"):
        assert name in spans
    assert b"Hello" not in spans
