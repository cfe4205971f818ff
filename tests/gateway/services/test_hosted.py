"""Files, uploads and batches are proxied to the front's provider with the operator's key."""

from __future__ import annotations

import http.client
import io
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import anthropic
import httpx
import openai
import pytest
from msgspec.structs import replace

from dragoman.gateway.services import hosted
from tests.gateway.running import Serving, routed, running
from tests.gateway.services.clients import (
    KEY,
    anthropic_client,
    gemini_client,
    gemini_errors,
    openai_client,
)
from tests.gateway.services.conftest import Stage

VERSION = {"anthropic-version": "2023-06-01"}
BEARER = "Bearer upstream-key"


def test_an_openai_file_makes_a_round_trip(stage: Stage) -> None:
    """Uploads, lists, reads and deletes a file; the provider receives the operator's key."""
    client = openai_client(stage.before("openai").url)
    made = client.files.create(file=("a.txt", b"abc"), purpose="batch")
    sent = stage.upstream("openai").asked[-1]
    assert (made.id, sent.path, sent.method) == ("file-1", "/v1/files", "POST")
    assert b"abc" in sent.body
    assert sent.headers["authorization"] == BEARER
    assert [file.id for file in client.files.list(purpose="batch", limit=3)] == ["file-1"]
    assert stage.upstream("openai").asked[-1].query == {"purpose": "batch", "limit": "3"}
    assert client.files.content("file-1").read() == b"a" * 1000 + b"b" * 1000
    assert client.files.delete("file-1").deleted


def test_nothing_of_the_client_but_a_few_headers_goes_upstream(stage: Stage) -> None:
    """The client's key, cookies and account headers are removed, and so are the provider's."""
    url = f"{stage.before('openai').url}/v1/files/file-1?key={KEY}"
    mine = {"authorization": f"Bearer {KEY}", "cookie": "a=1", "openai-organization": "o",
            "x-forwarded-for": "1.2.3.4", "connection": "x-secret", "x-secret": KEY,
            "accept": "application/json"}  # fmt: skip
    answer = httpx.get(url, headers=mine)
    sent = stage.upstream("openai").asked[-1]
    assert KEY not in str(sent.headers) + str(sent.query)
    assert {"cookie", "openai-organization", "x-forwarded-for", "x-secret"}.isdisjoint(sent.headers)
    assert sent.headers["accept"] == "application/json"
    assert answer.headers["x-request-id"] == "req_up"
    assert {"set-cookie", "x-api-key"}.isdisjoint(answer.headers)


def test_openai_batches_pass(stage: Stage) -> None:
    """A batch is created at the provider."""
    client = openai_client(stage.before("openai").url)
    batch = client.batches.create(
        input_file_id="file-1", endpoint="/v1/chat/completions", completion_window="24h"
    )
    assert batch.id == "batch_1"


def test_anthropic_batches_pass_and_their_results_come_from_here(stage: Stage) -> None:
    """The SDK sends the client's key to `results_url`, so the URL must be the gateway's."""
    serving = stage.before("anthropic")
    client = anthropic_client(serving.url)
    batch = client.messages.batches.retrieve("b1")
    assert (batch.results_url or "").startswith(f"{serving.url}/v1/messages/batches/b1/results")
    assert [each.custom_id for each in client.messages.batches.results("b1")] == ["one"]
    assert [each.results_url for each in client.messages.batches.list()] == [batch.results_url]
    sent = stage.upstream("anthropic").asked[-1]
    assert (sent.headers["authorization"], sent.headers.get("x-api-key")) == (BEARER, None)


def test_anthropic_files_are_told_apart_by_their_header(stage: Stage) -> None:
    """Two APIs share one path."""
    client = anthropic_client(stage.before("openai", "anthropic").url)
    made = client.beta.files.upload(file=("a.txt", b"abc", "text/plain"), betas=["files-api-1"])
    sent = stage.upstream("anthropic").asked[-1]
    assert (made.id, sent.path) == ("file_1", "/v1/files")
    assert "files-api-1" in sent.headers["anthropic-beta"]


def test_a_gemini_upload_goes_on_at_the_gateway(stage: Stage) -> None:
    """The upload URL contains neither the provider's host nor its key, and works."""
    serving = stage.before("gemini")
    headers = {"x-goog-upload-protocol": "resumable", "x-goog-upload-command": "start"}
    begun = httpx.post(f"{serving.url}/upload/v1beta/files", headers=headers, json={})
    address = begun.headers["x-goog-upload-url"]
    assert address.startswith(f"{serving.url}/upload/v1beta/files?upload_id=u1&")
    assert "upstream-key" not in str(begun.headers)
    assert stage.upstream("gemini").url not in str(begun.headers)
    client = gemini_client(serving.url)
    made = client.files.upload(file=io.BytesIO(b"abc"), config={"mime_type": "text/plain"})
    sent = stage.upstream("gemini").asked[-1]
    assert (made.name, sent.body, sent.query["upload_id"]) == ("files/f1", b"abc", "u1")
    assert client.files.get(name="files/f1").name == "files/f1"


def test_the_wrong_back_is_a_bad_request_in_the_fronts_form(stage: Stage) -> None:
    """The SDKs raise their own exception class."""
    with pytest.raises(openai.BadRequestError, match="none is configured"):
        openai_client(stage.before("anthropic").url).batches.list()
    with pytest.raises(anthropic.BadRequestError, match="none is configured"):
        anthropic_client(stage.before("openai").url).messages.batches.list()
    client = gemini_client(stage.before("openai").url)
    with pytest.raises(gemini_errors.ClientError, match="none is configured"):
        list(client.files.list())


def test_errors_of_the_provider_come_in_our_words(stage: Stage) -> None:
    """The status is kept, quoted content is removed, and redirects are not followed."""
    client = openai_client(stage.before("openai").url)
    with pytest.raises(openai.NotFoundError) as caught:
        client.files.retrieve("file-gone")
    assert "upstream-key" not in str(caught.value)
    with pytest.raises(openai.InternalServerError):
        client.files.retrieve("file-away")


@contextmanager
def _several(stage: Stage) -> Generator[Serving]:
    """A gateway with two places of OpenAI's API, neither of which is the default."""
    config = routed(stage.upstream("anthropic").place())
    more = {name: stage.upstream("openai").place(name) for name in ("one", "two")}
    with running(replace(config, places={**config.places, **more})) as serving:
        yield serving


def test_several_places_have_to_be_told_apart(stage: Stage) -> None:
    """A header or query parameter chooses the provider; the error says so."""
    with _several(stage) as serving:
        client = openai_client(serving.url)
        with pytest.raises(openai.BadRequestError, match="one, two") as caught:
            client.files.list()
        assert "x-dragoman-provider" in str(caught.value)
        assert client.files.list(extra_headers={"x-dragoman-provider": "two"}).data
        assert client.files.list(extra_query={"provider": "one"}).data
        assert "provider" not in stage.upstream("openai").asked[-1].query
        for name in ("anthropic", "three", "../one"):
            with pytest.raises(openai.BadRequestError):
                client.files.list(extra_headers={"x-dragoman-provider": name})


TRICKS = [
    "/v1/files/../models", "/v1/files/%2e%2e/models", "/v1/files/..%2fmodels",
    "/v1/files/%252e%252e/models", "/v1/files//file-1", "//v1/files", "/v1/files/",
    "/v1/files/file-1/", "/v1/files/file-1%3Fa=b", "/v1/files/file-1%23", "/v1/files/a%00b",
    "/v1/files/http://127.0.0.1:1/", "/v1/files/file-1/content/../../models", "/v1/files/%0d%0aX",
    "/v1/files/file-1;x=y", "/v1/files/@127.0.0.1", "/v1/files/\\..\\models", "/v1/batches/a/b/c",
    "/v1/messages/batches/..", "/v1beta/files/a:b", "/v1beta/models/..:batchGenerateContent",
    "/v1beta/models/%2e%2e%2ffiles:batchGenerateContent", "/upload/v1beta/files/..",
    "/v1/files?url=http://127.0.0.1", "/v1/files?limit=1&host=x", "/v1/files?%ff=1",
]  # fmt: skip


@pytest.mark.parametrize("target", TRICKS)
def test_path_tricks_are_refused(stage: Stage, target: str) -> None:
    """Only allowlisted paths reach the provider with the operator's key."""
    address = urlsplit(stage.before("openai").url)
    before = len(stage.upstream("openai").asked)
    connection = http.client.HTTPConnection(address.hostname or "", address.port)
    connection.putrequest("GET", target, skip_accept_encoding=True)
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status in {400, 404, 405}
    connection.close()
    assert len(stage.upstream("openai").asked) == before


def test_large_files_are_sent_on_as_they_come(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With and without a length; files over the limit are rejected, and nothing is buffered."""
    url = f"{stage.before('openai').url}/v1/files"
    piece = b"x" * 100_000

    def pieces(count: int) -> Iterator[bytes]:
        yield from (piece for _ in range(count))

    whole = httpx.post(url, content=piece * 30)
    assert whole.status_code == 200
    assert len(stage.upstream("openai").asked[-1].body) == 3_000_000
    assert stage.upstream("openai").asked[-1].headers["content-length"] == "3000000"
    assert httpx.post(url, content=pieces(30)).status_code == 200
    assert len(stage.upstream("openai").asked[-1].body) == 3_000_000
    monkeypatch.setattr(hosted, "MAX_UPLOAD", 1_000_000)
    gateway = stage.before("openai").gateway
    config = gateway.config
    monkeypatch.setattr(
        gateway, "config", replace(config, server=replace(config.server, max_body=9))
    )
    assert httpx.post(url, content=pieces(11)).status_code == 413
    assert httpx.post(url, content=piece * 30).status_code == 413


def test_methods_that_a_path_has_not_are_refused(stage: Stage) -> None:
    """The `Allow` header lists the supported methods; a GET with a body is rejected."""
    answer = httpx.delete(f"{stage.before('openai').url}/v1/files")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST")
    answer = httpx.request("GET", f"{stage.before('openai').url}/v1/files", content=b"x")
    assert answer.status_code == 400
