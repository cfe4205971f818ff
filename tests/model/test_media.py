"""Media from files, bytes, base64, data URLs, addresses and uploads."""

from __future__ import annotations

import socket
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InvalidInputError
from dragoman.model import media
from dragoman.model.media import Audio, File, Image, Media, Video, sniff, sniff_base64

PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)
_OFFICE = "application/vnd.openxmlformats-officedocument"
KINDS: list[type[Media]] = [Image, Audio, Video, File]


@pytest.mark.parametrize(("head", "mime"), [
    (PNG, "image/png"),
    (b"\xff\xd8\xff\xe0", "image/jpeg"),
    (b"GIF89a", "image/gif"),
    (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
    (b"RIFF\x00\x00\x00\x00WAVEfmt ", "audio/wav"),
    (b"RIFF\x00\x00\x00\x00AVI LIST", "video/x-msvideo"),
    (b"BM\x36\x00\x0c\x00\x00\x00\x00\x00\x36", "image/bmp"),
    (b"\x00\x00\x00\x18ftypheic", "image/heic"),
    (b"\x00\x00\x00\x18ftypM4A ", "audio/mp4"),
    (b"\x00\x00\x00\x18ftypqt  ", "video/quicktime"),
    (b"\x00\x00\x00\x18ftypisom", "video/mp4"),
    (b"ID3\x04", "audio/mpeg"),
    (b"\xff\xfb\x90", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"%PDF-1.7", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"", None),
    (b"hello", None),
    (b"BMW builds cars", None),
    (b"12345678WAVE", None),
])  # fmt: skip
def test_the_first_bytes_tell_the_mime_type(head: bytes, mime: str | None) -> None:
    """Detected in bytes and in base64; text is not mistaken for an image."""
    assert sniff(head) == mime
    assert sniff_base64(b64encode(head).decode()) == mime


@pytest.mark.parametrize("kind", KINDS)
@given(content=st.binary(max_size=64))
def test_bytes_come_back(kind: type[Media], content: bytes) -> None:
    """Content given as bytes, base64 or data URL is the same content."""
    made = kind.from_bytes(content)
    assert made.content == content
    assert made.data is not None
    assert kind.from_base64(made.data).content == content
    assert kind.from_data_url(made.data_url) == made


@pytest.mark.parametrize(("kind", "mime"), [
    (Image, "image/png"), (Audio, "audio/wav"), (Video, "video/mp4"),
    (File, "application/octet-stream"),
])  # fmt: skip
def test_a_mime_type_is_given_sniffed_or_the_usual(kind: type[Media], mime: str) -> None:
    """The caller's value wins, then the detected one, then the default."""
    assert kind.from_bytes(b"?").mime == mime
    assert kind.from_bytes(b"%PDF-1").mime == "application/pdf"
    assert kind.from_bytes(b"%PDF-1", "text/x").mime == "text/x"
    assert kind.from_base64("JVBERi0x").mime == "application/pdf"
    assert kind.from_base64("aGk=", "text/x").mime == "text/x"


@pytest.mark.parametrize(("url", "mime", "content"), [
    ("data:image/png;base64,aGk=", "image/png", b"hi"),
    ("data:text/plain;charset=utf-8;base64,aGk=", "text/plain", b"hi"),
    ("data:text/plain,a%20b", "text/plain", b"a b"),
    ("data:,x", None, b"x"),
    ("data:;base64,JVBERi0x", "application/pdf", b"%PDF-1"),
])  # fmt: skip
def test_data_urls_are_taken_apart(url: str, mime: str | None, content: bytes) -> None:
    """Every constructor that takes a URL or base64 also takes a data URL; it is kept inline."""
    for make in (File.from_data_url, File.from_url, File.from_base64):
        made = make(url)
        assert (made.mime, made.content, made.url) == (mime, content, None)


def test_a_given_mime_type_wins_over_the_data_url() -> None:
    """A mime type given beside a data URL is the one that counts."""
    assert Image.from_url("data:image/png;base64,aGk=", "image/webp").mime == "image/webp"


def test_an_address_is_kept_and_never_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making and reading media by address opens no connection."""

    def no_network(*_args: Any) -> None:
        pytest.fail("the network was used")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    image = Image.from_url("https://example.com/cat.png", detail="high")
    assert (image.url, image.mime, image.detail) == ("https://example.com/cat.png", None, "high")
    assert image.data_url == image.url
    with pytest.raises(InvalidInputError, match="has no inline data"):
        _ = image.content


def test_an_uploaded_file_has_only_its_id() -> None:
    """There is neither content nor an address to give."""
    file = File.from_file_id("file-1", name="a.pdf")
    assert (file.file_id, file.name) == ("file-1", "a.pdf")
    with pytest.raises(InvalidInputError, match="has no URL"):
        _ = file.data_url
    with pytest.raises(InvalidInputError, match="has no inline data"):
        _ = file.content


@pytest.mark.parametrize(("name", "content", "mime"), [
    ("cat.png", PNG, "image/png"),
    ("cat.txt", PNG, "image/png"),
    ("notes.MD", b"# hi", "text/markdown"),
    ("unknown", b"hi", "application/octet-stream"),
    ("letter.docx", b"PK\x03\x04", f"{_OFFICE}.wordprocessingml.document"),
    ("SUMS.XLSX", b"PK\x03\x04", f"{_OFFICE}.spreadsheetml.sheet"),
    ("talk.pptx", b"PK\x03\x04", f"{_OFFICE}.presentationml.presentation"),
    ("letter.odt", b"PK\x03\x04", "application/vnd.oasis.opendocument.text"),
    ("book.epub", b"PK\x03\x04", "application/epub+zip"),
    ("old.doc", b"\xd0\xcf\x11\xe0", "application/msword"),
    ("old.xls", b"\xd0\xcf\x11\xe0", "application/vnd.ms-excel"),
    ("letter.rtf", b"{\\rtf1", "application/rtf"),
    ("many.zip", b"PK\x03\x04", "application/zip"),
    ("notes.txt", b"PK\x03\x04", "application/zip"),
    ("letter.docx", b"%PDF-1.7", "application/pdf"),
])  # fmt: skip
def test_from_path_reads_a_file_now(tmp_path: Path, name: str, content: bytes, mime: str) -> None:
    """Content, name and mime type come from the file; bytes say more than its suffix.

    Only of an archive they don't say which document it is.
    """
    path = tmp_path / name
    path.write_bytes(content)
    for given_path in (path, str(path)):
        file = File.from_path(given_path)
        assert (file.content, file.name, file.mime) == (content, name, mime)
    path.unlink()
    assert file.content == content


def test_types_are_the_same_on_every_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's own table of types has no say."""
    monkeypatch.setattr("mimetypes.guess_type", lambda *_, **__: ("text/odd", None))
    path = tmp_path / "letter.docx"
    path.write_bytes(b"PK\x03\x04")
    assert File.from_path(path).mime == f"{_OFFICE}.wordprocessingml.document"


def test_from_path_takes_another_name_and_type(tmp_path: Path) -> None:
    """Given values win over those derived from the file."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"hi")
    file = File.from_path(path, "text/x", name="b.txt")
    assert (file.mime, file.name) == ("text/x", "b.txt")


def test_from_path_refuses_what_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file beyond the limit is not read into memory whole."""
    path = tmp_path / "large"
    path.write_bytes(b"12345")
    monkeypatch.setattr(media, "MAX_FILE_BYTES", 4)
    with pytest.raises(InvalidInputError, match="larger than 4 bytes"):
        File.from_path(path)


@pytest.mark.parametrize("path", ["/nowhere/secret-name", "secret\x00name", "/"])
def test_from_path_errors_do_not_contain_the_path(path: str) -> None:
    """A file that can't be read raises an error without its name."""
    with pytest.raises(InvalidInputError, match="can't read the file") as caught:
        File.from_path(path)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(("make", "problem"), [
    (Image, "Image needs exactly one of data, url and file_id"),
    (lambda: Image(data="", url="x:y"), "Image needs exactly one of"),
    (lambda: Image(data=b""), "Image.data must be str, not bytes"),  # type: ignore[arg-type]
    (lambda: Image(url="x:y", mime=5), "Image.mime must be str"),  # type: ignore[arg-type]
    (lambda: Image.from_bytes("text"), "Image content must be bytes"),  # type: ignore[arg-type]
    (lambda: Image.from_base64("not base64!"), "Image data is not base64"),
    (lambda: Image.from_base64("é"), "Image data is not base64"),
    (lambda: Image.from_base64(b"aGk="), "Image data must be str"),  # type: ignore[arg-type]
    (lambda: Image.from_data_url("data:image/png;base64,?"), "malformed data URL"),
    (lambda: Image.from_data_url("https://x"), "malformed data URL"),
    (lambda: Image.from_data_url("data:image/png"), "malformed data URL"),
    (lambda: Image.from_data_url(5), "Image data URL must be str"),  # type: ignore[arg-type]
    (lambda: Image.from_url("cat.png"), "must start with a scheme"),
    (lambda: Image.from_url(""), "must start with a scheme"),
    (lambda: Image.from_url("https:"), "must start with a scheme"),
    (lambda: Image.from_url(None), "Image url must be str"),  # type: ignore[arg-type]
    (lambda: Image.from_file_id(""), "Image file id is empty"),
    (lambda: Image.from_file_id(5), "Image file id must be str"),  # type: ignore[arg-type]
    (lambda: Image.from_path(5), "Image path must be str or PathLike"),  # type: ignore[arg-type]
    (lambda: Audio.from_format("aGk=", 5), "the format of audio must be str"),  # type: ignore[arg-type]
    (lambda: Audio(url="x:y").replace(transcript=5), "Audio.transcript must be str"),
])  # fmt: skip
def test_other_values_are_rejected(make: Callable[[], Media], problem: str) -> None:
    """Each constructor's error describes what it expects."""
    with pytest.raises(InvalidInputError, match=problem):
        make()


def test_base64_that_was_not_checked_fails_when_read() -> None:
    """Broken data from a wire can be passed on; only decoding it raises."""
    with pytest.raises(InvalidInputError, match="data is not base64"):
        _ = Image(data="é").content


@pytest.mark.parametrize(("audio_format", "mime"), [
    ("wav", "audio/wav"), ("mp3", "audio/mpeg"), ("flac", "audio/flac"), ("opus", "audio/opus"),
    ("m4a", "audio/mp4"), ("pcm16", "audio/pcm"), ("strange", "audio/strange"),
])  # fmt: skip
def test_audio_formats_and_mime_types_are_one(audio_format: str, mime: str) -> None:
    """The short names of OpenAI and mime types translate both ways."""
    audio = Audio.from_format("aGk=", audio_format)
    assert (audio.mime, audio.format) == (mime, audio_format)


@pytest.mark.parametrize(("mime", "name"), [
    ("audio/x-wav", "wav"), ("audio/wave", "wav"), ("audio/mp3", "mp3"), (None, "wav"),
])  # fmt: skip
def test_other_spellings_of_audio_types_are_known(mime: str | None, name: str) -> None:
    """Other people's mime types have the same short names."""
    assert Audio(data="aGk=", mime=mime).format == name


@pytest.mark.parametrize(("medium", "text"), [
    (Image.from_bytes(PNG), "Image(image/png, 33 bytes)"),
    (Image(url="https://x/secret"), "Image(url)"),
    (File(file_id="secret"), "File(uploaded)"),
    (File(url="x:y", mime="secret/type"), "File(other type, url)"),
])  # fmt: skip
def test_repr_shows_type_and_size(medium: Media, text: str) -> None:
    """Neither addresses nor ids nor odd types are shown."""
    assert repr(medium) == text
