"""The content of the golden files in `tests/fixtures/history/`, as current values.

The files are frozen: every later version reads them. A new stored form gets its own files.
Version 2 has everything that version 1 has, and fields for checksums, chains, windows and seals.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from dragoman import (
    Audio,
    File,
    FinishReason,
    Image,
    Message,
    Opaque,
    Refusal,
    Role,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    Video,
)
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import read_line
from dragoman.history.storage.protocol import Fork, Row, Session
from dragoman.model.messages import make_message
from dragoman.model.parts import CacheHint, Citation, Origin
from dragoman.model.tools import make_call, make_result

FOLDER = Path(__file__).parents[1] / "fixtures" / "history"
VERSIONS = (1, 2)
KEYS = {"2026": bytes(range(32))}
WHO = SessionIdentity(agent="Guide/ä", chat="7", user="", scope="te\0st")
_CUT = b'{"branch":1,"cut":{"first":"msg_03","left_out":2}'
WINDOW = {
    version: b'{"dragoman":%d,"kind":"Window","value":%s}}' % (version, _CUT)
    for version in VERSIONS
}
WINDOWS = b'{"dragoman":2,"kind":"Windows","value":[%s,"model":"m-1","limit":3000},%s}]}' % (
    _CUT,
    _CUT,
)
SEAL = (
    b'{"dragoman":2,"kind":"SealedHead","value":{"key":"2026","check":"5e0e1a2b",'
    b'"nonce":"AAAAAAAAAAAAAAAA","data":"AAAA","place":"2:17"}}'
)
_PLAIN = Session(
    WHO, 16, 17, 1_763_294_400.5, 1_763_294_417.0, 2, (Fork(1, 0, 3), Fork(2, 1, 15)), WINDOW[1]
)
SESSION = {
    1: _PLAIN,
    2: msgspec.structs.replace(_PLAIN, window=WINDOW[2], windows=WINDOWS, chain="c17", seal=SEAL),
}
_ORIGIN = Origin(dialect="anthropic", provider="anthropic", model="m-1", response_id="r1")
_USAGE = Usage(input=3, output=5, cache_read=7, cache_write=11, thinking=13, reported_total=40)

_SAID = [
    Message(Role.SYSTEM, (Text("Be kind.", cache=CacheHint("1h")),)),
    Message(Role.DEVELOPER, (Text("Be brief."),), name="dev"),
    Message(
        Role.USER,
        (
            Text("Look: é 🙂 \0 \u2028"),
            Image(data="aGk=", mime="image/png", detail="low"),
            Audio(data="aGk=", mime="audio/wav"),
            Video(url="https://example.org/a.mp4"),
            File(file_id="file_1", name="a.pdf", mime="application/pdf"),
        ),
        created_at=1_763_294_402.25,
    ),
    Message(
        Role.ASSISTANT,
        (
            Thinking("hm", signature="c2ln", origin=_ORIGIN),
            Thinking(data="b3BhcXVl", form="redacted"),
            Text("I will look.", citations=(Citation(kind="url", url="https://x.org", start=0),)),
            ToolCall("call_1", "weather", raw='{"city": "Oslo" }', item_id="fc_1"),
            ToolCall("call_2", "sum", input={"a": 1.5, "b": None}, wire_id=None),
            ToolCall("call_3", "shell", raw="ls -l", kind="custom", wire_id="w3"),
        ),
        origin=_ORIGIN,
        usage=_USAGE,
        finish=FinishReason.TOOL_CALLS,
    ),
    Message(
        Role.TOOL,
        (
            make_result("call_1", "sunny", tool_name="weather"),
            ToolResult("call_2", data={"sum": 1.5}, is_error=False),
            ToolResult("call_3", (Text("out"), Image(url="https://x.org/a.png")), is_error=True),
        ),
    ),
    Message(Role.ASSISTANT, (Text("Sunny."),), usage=Usage(input=1), finish=FinishReason.STOP),
    Message(Role.ASSISTANT, (Refusal("No."),), finish=FinishReason.REFUSAL),
    Message(
        Role.ASSISTANT,
        (
            ServerToolCall("web_search", "srv_1", {"query": "x"}, "web"),
            ServerToolResult("web_search", "srv_1", [{"title": "t"}], is_error=False),
            Opaque("openai-responses", {"type": "new_thing", "n": 2**53 + 1}),
        ),
        extras={"openai-responses": {"status": None}},
    ),
    Message(Role.USER, (Text("half \ud800 a character"),)),
    Message(Role.USER, (Text(""),), metadata={"a": [1, 2.5, True, None, {"b": "é"}]}),
    Message(Role.ASSISTANT, (Text("cut o"),), finish=FinishReason.LENGTH),
    make_message(Role.ASSISTANT, ()),
    Message(Role.USER, (make_result("call_9", "late"), Text("and more"))),
    Message(Role.ASSISTANT, (make_call("call_4", "broken", raw='{"a": '),)),
    Message(Role.TOOL, (ToolResult("call_4", "not JSON", is_error=True, kind="custom"),)),
    Message(Role.USER, (Text("on a branch", extras={"gemini": {"x": 1}}),)),
    Message(Role.USER, (Text("on a branch of it"),)),
]
PROOFS = {1: [(None, None)] * 17, 2: [(f"s{n}", f"c{n}") for n in range(1, 18)]}
"""Checksums and chains of the rows."""
MESSAGES = [each.with_id(f"msg_{number:02}") for number, each in enumerate(_SAID, 1)]


def lines(version: int, name: str) -> list[bytes]:
    """The lines of a golden file."""
    return (FOLDER / f"v{version}" / name).read_bytes().rstrip(b"\n").split(b"\n")


def rows(version: int, name: str = "export.jsonl") -> list[Row]:
    """The rows in a golden file."""
    found = [read_line(line) for line in lines(version, name)]
    return [each for each in found if isinstance(each, Row)]
