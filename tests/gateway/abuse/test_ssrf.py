"""URLs in requests: the gateway forwards or rejects them, and never opens one itself."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.gateway.abuse.stage import CANARY, Stage, refused
from tests.gateway.client_requests import body_for

pytestmark = pytest.mark.whole


class Trap:
    """Listens on all addresses of this machine, and counts connections."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("0.0.0.0", 0))  # noqa: S104 - every notation leads here
        self.port = self._listening.getsockname()[1]
        self.visits = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self.visits += 1
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                connection.close()

    def close(self) -> None:
        """Stop listening."""
        self._listening.close()


@pytest.fixture(scope="module")
def trap() -> Iterator[Trap]:
    """A server that must not be contacted."""
    made = Trap()
    yield made
    made.close()


HOSTS = (
    "127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0", "0.0.0.0",  # noqa: S104
    "[::1]", "[::ffff:127.0.0.1]", "[0:0:0:0:0:ffff:7f00:1]", "localtest.me", "127.0.0.1.nip.io",
    "user:pass@127.0.0.1", "127.0.0.1%2f", "①②⑦.⓪.⓪.①", "169.254.169.254",
    "metadata.google.internal",
)  # fmt: skip
SCHEMES = (
    "http",
    "https",
    "HTTP",
    "ftp",
    "gopher",
    "file",
    "dict",
    "ws",
    "data",
    "gs",
    "s3",
    "jar:http",
)


def _media(front: str, url: str) -> list[object]:
    """Content with an image and a document by URL, as far as the dialect has them."""
    match front:
        case "openai-chat":
            return [{"type": "image_url", "image_url": {"url": url}},
                    {"type": "text", "text": CANARY}]  # fmt: skip
        case "openai-responses":
            return [{"role": "user", "content": [
                {"type": "input_image", "image_url": url}, {"type": "input_file", "file_url": url},
            ]}]  # fmt: skip
        case "anthropic":
            source = {"type": "url", "url": url}
            return [{"type": "image", "source": source}, {"type": "document", "source": source}]
        case "gemini":
            return [{"fileData": {"fileUri": url, "mimeType": "image/png"}}, {"text": CANARY}]
        case _:
            return [url]


def _with_media(front: str, model: str, url: str) -> dict[str, object]:
    body = body_for(front, model=model)
    found = _media(front, url)
    match front:
        case "gemini":
            body["contents"][0]["parts"] = found
        case "openai-responses":
            body["input"] = found
        case "ollama":
            body["messages"][0]["images"] = found
        case _:
            body["messages"][0]["content"] = found
    return dict(body)


@pytest.mark.parametrize(
    "back", ["openai-chat", "openai-responses", "anthropic", "gemini", "ollama"]
)
def test_media_urls_are_never_opened(stage: Stage, trap: Trap, front: str, back: str) -> None:
    """Whatever the URL, the gateway only contacts the provider."""
    model = f"{back}.good"
    for number, host in enumerate(HOSTS):
        scheme = SCHEMES[number % len(SCHEMES)]
        for url in (
            f"http://{host}:{trap.port}/x.png",
            f"{scheme}://{host}:{trap.port}/etc/passwd",
        ):
            answer = stage.post(front, _with_media(front, model, url), model=model)
            if answer.status != 200:
                refused(front, answer, *range(400, 500))
    assert trap.visits == 0
    stage.serves(front, back)


NAMES = (
    "openai-compatible:http://127.0.0.1:{port}/v1", "http://127.0.0.1:{port}", "local:/etc/passwd",
    "scripted:/etc/passwd", "file:///etc/passwd", "openai-chat-lab@127.0.0.1:{port}:x",
    "replay:/etc/passwd", "azure:x?resource=127.0.0.1:{port}#", "vllm:x", "ollama:x", "echo:",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_model_name_is_not_a_url(stage: Stage, trap: Trap, front: str, name: str) -> None:
    """Only routes decide where a request goes: a name can't select a server, file or program."""
    model = name.format(port=trap.port)
    path = None
    if front == "gemini":
        from urllib.parse import quote

        path = f"/v1beta/models/{quote(model, safe='')}:generateContent"
    answer = stage.post(front, body_for(front, CANARY, model=model), path=path)
    refused(front, answer, 404)
    assert trap.visits == 0
    stage.serves(front)


FIELDS = (
    "base_url",
    "api_base",
    "endpoint",
    "host",
    "proxy",
    "webhook_url",
    "callback",
    "extra_headers",
)


def test_urls_in_fields_and_headers(stage: Stage, trap: Trap, front: str) -> None:
    """A request can't choose the server that answers it."""
    url = f"http://127.0.0.1:{trap.port}/v1"
    body = body_for(front, CANARY) | dict.fromkeys(FIELDS, url)
    headers = [
        ("x-forwarded-host", f"127.0.0.1:{trap.port}"),
        ("forwarded", f"host=127.0.0.1:{trap.port}"),
        ("x-original-url", url), ("x-rewrite-url", url), ("x-target-url", url),
        ("x-dragoman-place", url), ("openai-base-url", url), ("proxy", url),
    ]  # fmt: skip
    answer = stage.post(front, json.dumps(body).encode(), *headers)
    assert answer.status == 200 or refused(front, answer, 400, 422)
    assert trap.visits == 0
    stage.serves(front)
