"""Uploading files for use in messages."""

from __future__ import annotations

from email import message_from_bytes
from email.message import Message as Mail
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import (
    ConfigError,
    InvalidInputError,
    PermissionDenied,
    TimeoutError,  # noqa: A004 - ours
    WireError,
)
from dragoman.model.media import Audio, File, Image, Video
from dragoman.model.messages import Message
from dragoman.model.parts import Origin
from dragoman.model.requests import Request
from dragoman.transport.client import Client
from dragoman.transport.replay import Mode, ReplayTransport
from tests.transport.vendors import Came, Goes, Vendor, failed, serving

PDF = b"%PDF-1.7\r\n--x\r\n\x00\xff"
PNG = b"\x89PNG\r\n\x1a\n"


def client(vendor: Vendor, model: str, path: str = "", **options: Any) -> Client:
    """A client of a provider on loopback."""
    return Client(model, base_url=f"{vendor.url}{path}", key="k", **options)


def forms(came: Came) -> dict[str, Mail]:
    """The parts of a form, parsed by the standard library."""
    head = f"Content-Type: {came.headers['Content-Type']}\r\n\r\n".encode()
    mail = message_from_bytes(head + came.body)
    parts = [part for part in mail.walk() if not part.is_multipart()]
    return {str(part.get_param("name", header="content-disposition")): part for part in parts}


async def test_openai_takes_a_form() -> None:
    """With the purpose of use in messages; the part has the file's id and provider."""
    async with (
        serving(lambda _: Goes({"id": "file-1", "object": "file"})) as vendor,
        client(vendor, "openai:m", "/v1") as made,
    ):
        part = await made.upload(PDF, name='a"b\r\nc.pdf')
    assert isinstance(part, File)
    assert (part.file_id, part.mime) == ("file-1", "application/pdf")
    assert part.origin == Origin(dialect="openai-chat", provider="openai")
    (came,) = vendor.came
    assert (came.method, came.path) == ("POST", "/v1/files")
    assert came.headers["Authorization"] == "Bearer k"
    sent = forms(came)
    assert sent["purpose"].get_payload() == "user_data"
    assert sent["file"].get_payload(decode=True) == PDF
    assert sent["file"].get_filename() == "a_b__c.pdf"
    assert sent["file"].get_content_type() == "application/pdf"


async def test_a_name_that_is_no_utf8() -> None:
    """Python reads such a file name as half characters, which no form can have."""
    async with (
        serving(lambda _: Goes({"id": "file-1", "object": "file"})) as vendor,
        client(vendor, "openai:m", "/v1") as made,
    ):
        await made.upload(PDF, name="caf\udce9.pdf")
    (came,) = vendor.came
    assert forms(came)["file"].get_filename() == "caf_.pdf"


async def test_anthropic_takes_a_form() -> None:
    """With the beta header that files need."""
    async with (
        serving(lambda _: Goes({"id": "file_2", "type": "file"})) as vendor,
        client(vendor, "anthropic:m") as made,
    ):
        part = await made.upload(PNG, mime="image/png", name="cat.png")
        assert isinstance(part, Image)
        encoded = made.encode(Request(model="m", messages=(Message.user("Look", part),)))
    assert (part.file_id, part.name) == ("file_2", "cat.png")
    (came,) = vendor.came
    assert came.path == "/v1/files"
    assert "files-api" in came.headers["anthropic-beta"]
    assert forms(came)["file"].get_payload(decode=True) == PNG
    assert encoded.body["messages"][0]["content"][1]["source"] == {
        "type": "file", "file_id": "file_2",
    }  # fmt: skip


class Google:
    """Google's protocol: start, upload, poll."""

    def __init__(self, *states: str) -> None:
        self.states = list(states)
        self.url = ""

    def __call__(self, came: Came) -> Goes:
        """The reply to each step."""
        if came.headers.get("X-Goog-Upload-Command") == "start":
            where = "https://elsewhere.invalid/upload/v1beta/files?upload_id=u1"
            return Goes({}, headers={"X-Goog-Upload-URL": where})
        file = {"name": "files/f1", "uri": "https://x/files/f1", "state": self.states.pop(0)}
        return Goes(file if came.method == "GET" else {"file": file})


async def test_google_takes_two_steps() -> None:
    """The second goes to the same host, whatever URL is returned: the key goes nowhere else."""
    async with serving(Google("ACTIVE")) as vendor, client(vendor, "google:m") as made:
        part = await made.upload(PDF, name="Übung.pdf")
        encoded = made.encode(Request(model="m", messages=(Message.user(part),)))
    assert part.file_id == "files/f1"
    start, finish = vendor.came
    assert start.path == finish.path == "/upload/v1beta/files"
    assert start.headers["X-Goog-Upload-Protocol"] == "resumable"
    assert start.headers["X-Goog-Upload-Header-Content-Length"] == str(len(PDF))
    assert start.headers["X-Goog-Upload-Header-Content-Type"] == "application/pdf"
    assert start.json == {"file": {"displayName": "Übung.pdf", "mimeType": "application/pdf"}}
    assert finish.query["upload_id"] == "u1"
    assert finish.headers["X-Goog-Upload-Command"] == "upload, finalize"
    assert "X-Goog-Upload-Protocol" not in finish.headers
    assert finish.body == PDF
    assert encoded.body["contents"][0]["parts"][0]["fileData"]["fileUri"].endswith("/files/f1")


async def test_a_video_is_waited_for() -> None:
    """Google processes it first; the part is returned when it can be used."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    states = ["PROCESSING", "PROCESSING", "ACTIVE"]
    async with serving(Google(*states)) as vendor, client(vendor, "google:m") as made:
        made._sleep = sleep
        part = await made.upload(b"....", mime="video/mp4")
    assert isinstance(part, Video)
    assert [came.path for came in vendor.came[2:]] == ["/v1beta/files/f1"] * 2
    assert waits == [0.5, 1.0]


async def test_a_video_that_is_never_ready_is_an_error() -> None:
    """One that failed at once, one that takes too long after the timeout."""

    async def sleep(seconds: float) -> None:
        assert seconds <= 5

    for states, error in ((["FAILED"], WireError), (["PROCESSING"] * 500, TimeoutError)):
        async with serving(Google(*states)) as vendor, client(vendor, "google:m") as made:
            made._sleep = sleep
            with pytest.raises(error):
                await made.upload(b"....", mime="video/mp4")


async def test_files_come_from_paths_and_media_too(tmp_path: Path) -> None:
    """Types and names are detected unless given."""
    path = tmp_path / "notes.md"
    path.write_bytes(b"# Notes")
    async with (
        serving(lambda _: Goes({"id": "f"})) as vendor,
        client(vendor, "openai:m") as made,
    ):
        one = await made.upload(path)
        two = await made.upload(str(path), mime="text/plain", name="x.txt")
        three = await made.upload(Audio.from_bytes(b"RIFF....WAVE"))
        four = await made.upload(bytearray(b"?"))
    assert (one.mime, one.name) == ("text/markdown", "notes.md")
    assert (two.mime, two.name) == ("text/plain", "x.txt")
    assert (type(three), three.mime, three.name) == (Audio, "audio/wav", "file")
    assert (four.mime, four.name) == ("application/octet-stream", "file")
    assert forms(vendor.came[0])["file"].get_payload(decode=True) == b"# Notes"


@pytest.mark.parametrize(
    ("source", "options"),
    [
        (3, {}),
        ("/no/such/file", {}),
        (Image.from_url("https://x.example/y.png"), {}),
        (b"x", {"mime": "text/plain\r\nX: y"}),
        (b"x", {"mime": 3}),
        (b"x", {"name": 3}),
    ],
)
async def test_invalid_files_are_not_sent(source: Any, options: Any) -> None:
    """They are errors of the caller."""
    async with serving(lambda _: Goes({})) as vendor, client(vendor, "openai:m") as made:
        with pytest.raises(InvalidInputError):
            await made.upload(source, **options)
    assert vendor.came == []


async def test_providers_without_uploads_say_so() -> None:
    """Ollama takes data only."""
    async with Client("ollama:m") as made:
        with pytest.raises(ConfigError, match="uploads"):
            await made.upload(PDF)


async def test_errors_are_raised() -> None:
    """The provider's, and a reply without an upload URL."""
    async with serving(lambda _: failed(403)) as vendor, client(vendor, "openai:m") as made:
        with pytest.raises(PermissionDenied):
            await made.upload(PDF)
    async with serving(lambda _: Goes({})) as vendor:
        async with client(vendor, "google:m") as made:
            with pytest.raises(WireError, match="upload URL"):
                await made.upload(PDF)
        async with client(vendor, "anthropic:m") as made:
            with pytest.raises(WireError, match="id"):
                await made.upload(PDF)


async def test_an_upload_can_be_replayed(tmp_path: Path) -> None:
    """The same file gives the same request, whatever the boundary."""
    path = tmp_path / "x.jsonl"
    async with serving(lambda _: Goes({"id": "file-1"})) as vendor:
        modes: list[Mode] = ["record", "replay"]
        for mode in modes:
            transport = ReplayTransport(path, mode)
            async with client(vendor, "openai:m", transport=transport) as made:
                assert (await made.upload(PDF)).file_id == "file-1"
            await transport.close()
    assert len(vendor.came) == 1
