"""Results of all kinds as parts, and their form in each dialect."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import mcp_types as types
import pytest
from msgspec import UNSET

from dragoman import Audio, File, Image, Message, Request, Text, ToolDefinition, dialect, dialects
from dragoman.errors import WireError
from dragoman.mcp.content import tool_result
from tests.mcp.servers import calling

PNG = b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 24).decode()
WAV = b64encode(b"RIFF\x24\0\0\0WAVEfmt " + b"\0" * 24).decode()
PDF = b64encode(b"%PDF-1.7\n" + b"\0" * 24).decode()
ZIP = b64encode(b"PK\x03\x04" + b"\xff" * 24).decode()


def result(*blocks: dict[str, Any], **more: Any) -> types.CallToolResult:
    """As it comes from a server."""
    return types.CallToolResult.model_validate({"content": [*blocks], **more})


def text(said: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": said}


def blob(data: str, mime: str | None = None, uri: str = "file:///a.bin") -> dict[str, Any]:
    """A resource that is embedded."""
    return {"type": "resource", "resource": {"uri": uri, "blob": data, "mimeType": mime}}


BLOCKS: dict[str, tuple[dict[str, Any], Any]] = {
    "image": (
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        Image(data=PNG, mime="image/png"),
    ),
    "image that lies about its type": (
        {"type": "image", "data": PNG, "mimeType": "image/jpeg"},
        Image(data=PNG, mime="image/png"),
    ),
    "image that is none": (
        {"type": "image", "data": b64encode(b"<svg/>").decode(), "mimeType": "image/svg+xml"},
        Text("[image of type image/svg+xml, 6 bytes, which can't be shown]"),
    ),
    "image that is no base64": (
        {"type": "image", "data": "%%%", "mimeType": "image/png"},
        Text("[image that is not valid base64]"),
    ),
    "audio": (
        {"type": "audio", "data": WAV, "mimeType": "audio/wav"},
        Audio(data=WAV, mime="audio/wav"),
    ),
    "audio that is an image": (
        {"type": "audio", "data": PNG, "mimeType": "audio/wav"},
        Text("[audio that is an image]"),
    ),
    "resource of text": (
        {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "Hello"}},
        Text("file:///a.txt\nHello"),
    ),
    "resource of a document": (
        blob(PDF, uri="file:///a.pdf"),
        File(data=PDF, mime="application/pdf", name="a.pdf"),
    ),
    "resource of a picture": (blob(PNG), Image(data=PNG, mime="image/png")),
    "resource of bytes that are text": (
        blob(b64encode(b"Hello").decode()),
        Text("file:///a.bin\nHello"),
    ),
    "resource of an archive": (
        blob(ZIP, "application/zip"),
        Text(
            "[file (file:///a.bin) of type application/zip, 28 bytes, which can't be shown]",
        ),
    ),
    "link": (
        {"type": "resource_link", "uri": "https://example.com/a", "name": "a", "description": "A."},
        Text("[resource: a, https://example.com/a, A.]"),
    ),
}


@pytest.mark.parametrize("kind", BLOCKS)
def test_a_block_is_a_part(kind: str) -> None:
    """Media types come from the first bytes; unsupported content is a note; links stay links."""
    block, part = BLOCKS[kind]
    assert tool_result(result(block, text("and")), None, "t").parts == (part, Text("and"))


@pytest.mark.parametrize("name", dialects())
@pytest.mark.parametrize("kind", BLOCKS)
def test_a_result_is_valid_in_every_dialect(name: str, kind: str) -> None:
    """Nothing is rejected, and losses are reported."""
    made = tool_result(result(text("Here:"), BLOCKS[kind][0]), None, "look")
    conversation = (
        Message.user("Look."),
        calling("look"),
        Message.tool(made.replace(call_id="call_1")),
    )
    tools = (ToolDefinition.create("look", "Look around."),)
    codec = dialect(name)
    encoded = codec.encode_request(Request(model="m", messages=conversation, tools=tools))
    found = codec.check(encoded.body, path=encoded.path)
    assert [each.rule for each in found if each.severity == "error"] == []
    again = codec.decode_request(encoded.body, path=encoded.path)
    said = "".join(message.preview(10_000) for message in again.messages)
    assert "Here:" in said or "Here:" in str(encoded.body)


STRUCTURED: dict[str, tuple[Any, Any, Any]] = {
    "repeated as JSON": (result(text('{"a": 1}'), structuredContent={"a": 1}), "", {"a": 1}),
    "alone": (result(structuredContent={"a": 1}), "", {"a": 1}),
    "a text, wrapped": (result(text("hi"), structuredContent={"result": "hi"}), "hi",
                        {"result": "hi"}),
    "beside words": (
        result(text("One."), structuredContent={"a": 1}),
        (Text("One."), Text('{"a":1}')),
        {"a": 1},
    ),
    "beside a picture": (
        result(text('{"a":1}'), BLOCKS["image"][0], structuredContent={"a": 1}),
        (Text('{"a":1}'), Image(data=PNG, mime="image/png")),
        {"a": 1},
    ),
    "not at all": (result(text("One.")), "One.", UNSET),
    "nothing": (result(), "", UNSET),
}  # fmt: skip


@pytest.mark.parametrize("kind", STRUCTURED)
def test_structured_content_is_data(kind: str) -> None:
    """It appears once; with other content, it is also JSON text for dialects without data."""
    given, content, data = STRUCTURED[kind]
    made = tool_result(given, None, "t")
    assert (made.content, made.data, made.is_error) == (content, data, False)


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def test_a_result_that_violates_its_schema_is_rejected() -> None:
    """The error has path and type, never the value; error results need not match."""
    with pytest.raises(WireError, match=r"\$\.a: expected an integer, got string"):
        tool_result(result(structuredContent={"a": "secret"}), SCHEMA, "t")
    with pytest.raises(WireError, match="no structured result"):
        tool_result(result(text("hi")), SCHEMA, "t")
    failed = tool_result(result(text("no"), isError=True), SCHEMA, "t")
    assert (failed.text, failed.is_error) == ("no", True)


def test_lone_surrogates_do_not_break_a_conversation() -> None:
    """Servers may send what no provider accepts."""
    made = tool_result(types.CallToolResult.model_construct(
        content=[types.TextContent.model_construct(type="text", text="a\ud800b")], is_error=False
    ), None, "t")  # fmt: skip
    assert made.text == "a\ufffdb"
