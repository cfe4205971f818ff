"""The grammar of Anthropic's streams, as a state machine (W66, W67, W69)."""

from __future__ import annotations

import json
from typing import Any

from dragoman.model.json_progress import is_beginning
from dragoman.wire.framing import SseParser

_DELTAS = {
    "text_delta": ("text", "text"),
    "citations_delta": ("text", "citation"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": (("tool_use", "server_tool_use", "mcp_tool_use"), "partial_json"),
}
_CUT_OFF = {"max_tokens", "model_context_window_exceeded"}


class Grammar:
    """Checks a stream event by event; an assertion fails on the first invalid event."""

    def __init__(self, *, may_break_off: bool = False) -> None:
        self.state = "start"
        self.index = -1
        self.block: dict[str, Any] | None = None
        self.arguments = ""
        self.is_signed = self.is_cut = False
        self.may_break_off = may_break_off  # allows arguments that the provider itself truncated

    def take(self, name: str | None, wire: dict[str, Any]) -> None:
        """Checks one event: its name equals its type, and it is allowed now."""
        kind = wire["type"]
        assert name == kind
        assert self.state not in {"stopped", "failed"}, "nothing follows the end"
        handler = getattr(self, f"_{kind}", None)
        if handler is not None:
            handler(wire)

    def _message_start(self, wire: dict[str, Any]) -> None:
        assert self.state == "start"
        message = wire["message"]
        assert message["type"] == "message"
        assert message["role"] == "assistant"
        assert message["content"] == []
        assert isinstance(message["id"], str)
        assert isinstance(message["model"], str)
        assert message["stop_reason"] is None
        _check_usage(message["usage"])
        self.state = "message"

    def _content_block_start(self, wire: dict[str, Any]) -> None:
        assert self.state == "message", "one block at a time"
        assert wire["index"] == self.index + 1, "numbers count up"
        block = wire["content_block"]
        if block["type"] == "tool_use" and not self.may_break_off:
            assert block["input"] == {}
        self.state, self.index, self.block = "block", wire["index"], block
        self.arguments, self.is_signed = "", False

    def _content_block_delta(self, wire: dict[str, Any]) -> None:
        assert self.state == "block"
        assert wire["index"] == self.index
        assert self.block is not None
        delta = wire["delta"]
        if delta["type"] not in _DELTAS:
            return
        kinds, field = _DELTAS[delta["type"]]
        assert self.block["type"] in kinds
        assert not self.is_signed, "the signature comes last"
        self.is_signed = delta["type"] == "signature_delta"
        if field == "partial_json":
            self.arguments += delta[field]
        else:
            assert delta[field] is not None

    def _content_block_stop(self, wire: dict[str, Any]) -> None:
        assert self.state == "block"
        assert wire["index"] == self.index
        assert self.block is not None
        if self.block["type"] == "tool_use" and not self.may_break_off:
            self.is_cut = self.is_cut or is_beginning(self.arguments)
            assert self.is_cut or isinstance(json.loads(self.arguments), dict)
        self.state = "message"

    def _message_delta(self, wire: dict[str, Any]) -> None:
        assert self.state in {"message", "finished"}
        assert {"stop_reason", "stop_sequence"} <= wire["delta"].keys()
        if self.is_cut:
            assert wire["delta"]["stop_reason"] in _CUT_OFF, "clients must not run the call"
        _check_usage(wire["usage"])
        self.state = "finished"

    def _message_stop(self, _wire: dict[str, Any]) -> None:
        assert self.state == "finished"
        self.state = "stopped"

    def _error(self, wire: dict[str, Any]) -> None:
        assert isinstance(wire["error"]["type"], str)
        assert isinstance(wire["error"]["message"], str)
        self.state = "failed"


def _check_usage(usage: dict[str, Any]) -> None:
    assert isinstance(usage["input_tokens"], int)
    assert isinstance(usage["output_tokens"], int)


def check_stream(stream: bytes, *, may_break_off: bool = False) -> Grammar:
    """Checks a whole stream and returns the final state."""
    grammar = Grammar(may_break_off=may_break_off)
    parser = SseParser()
    for frame in parser.feed(stream) + parser.close():
        grammar.take(frame.event, json.loads(frame.data))
    return grammar
