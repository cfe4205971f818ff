"""Conversations of ours, to be handed to every library: all that a message may hold."""

from __future__ import annotations

from base64 import b64encode

from dragoman import (
    Audio,
    File,
    FinishReason,
    Image,
    Message,
    Messages,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from dragoman.model import Citation, Origin

PNG = b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 2).decode("ascii")
WAV = b64encode(b"RIFF\xff\xff\xff\xffWAVE" + bytes(64)).decode("ascii")
PDF = b64encode(b"%PDF-1.7\xfb\xff\xfe").decode("ascii")
CLAUDE = Origin(dialect="anthropic", provider="anthropic", model="claude-opus-4-5")

PLAIN = Messages.of(
    [
        Message.system("Be brief."),
        Message.user("Will it rain?"),
        Message.assistant("No."),
        Message.user("Thanks 🐉 \x00 é"),
    ]
)
TOOLS = Messages.of(
    [
        Message.user("Rain in Basel and in Bern?"),
        Message.assistant(
            "I'll look.",
            tool_calls=[
                ToolCall.create("call_1", "weather", '{"city":  "Basel"}'),
                ToolCall.create("call_2", "weather", {"city": "Bern", "days": 2}),
            ],
            usage=Usage(input=100, output=20, cache_read=30, thinking=5),
            finish=FinishReason.TOOL_CALLS,
        ),
        Message.tool(
            ToolResult.success("call_1", "dry", tool_name="weather"),
            ToolResult.error("call_2", "no such city", tool_name="weather"),
        ),
        Message.assistant("Dry in Basel.", finish=FinishReason.STOP),
    ]
)
MEDIA = Messages.of(
    [
        Message.user(
            "Compare.",
            Image.from_base64(PNG, "image/png", detail="low"),
            Image.from_url("https://example.com/cat.png", "image/png"),
            Audio.from_base64(WAV, "audio/wav"),
            File.from_base64(PDF, "application/pdf"),
            File.from_url("https://example.com/a.pdf", "application/pdf"),
        ),
        Message.assistant(tool_calls=[ToolCall.create("call_1", "camera", {})]),
        Message.tool(
            ToolResult.success(
                "call_1",
                [Text("seen"), Image.from_base64(PNG, "image/png")],
                tool_name="camera",
            )
        ),
        Message.assistant("A cat."),
    ]
)
THINKING = Messages.of(
    [
        Message.user("Prove it."),
        Message.assistant(
            Thinking("Let me see.", signature="c2lnbmVk"),
            Thinking("", "c2VhbGVk", "redacted"),
            Text(
                "It is so.",
                (Citation(kind="web", url="https://example.com", title="Proof", quote="so"),),
            ),
            tool_calls=[ToolCall.create("toolu_1", "prove", {"step": 1})],
            origin=CLAUDE,
        ),
        Message.tool("toolu_1", "proven", tool_name="prove"),
        Message.assistant("Done.", origin=CLAUDE),
    ]
)
ALL = {"plain": PLAIN, "tools": TOOLS, "media": MEDIA, "thinking": THINKING}


def said(messages: Messages) -> list[Message]:
    """The messages one result each, as most libraries have them."""
    return list(messages.split_results())
