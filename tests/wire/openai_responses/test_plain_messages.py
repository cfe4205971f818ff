"""The fast path for plain messages gives the same result as the general path."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from dragoman import Message, Request, Text
from dragoman.model.messages import make_message
from dragoman.model.parts import CacheHint, Citation, Origin
from dragoman.model.roles import Role
from dragoman.model.tools import make_call, make_result
from dragoman.wire.openai_responses.dialect import TARGET
from dragoman.wire.openai_responses.layout_writer import MessageWriter
from dragoman.wire.openai_responses.request import encode_request

HERE, ELSEWHERE = Origin(dialect="openai-responses"), Origin(dialect="gemini")
ARGUMENTS = {"city": "Basel"}
EXTRAS: tuple[dict[str, Any], ...] = (
    {"openai-responses": {"odd": 1}},
    {"openai-responses spelling": {"values": [[["content"], "Hi", "Ho"]]}},
    {"anthropic": {"odd": 1}},
)
COMMON: tuple[dict[str, Any], ...] = (
    {},
    {"cache": CacheHint("1h")},
    {"origin": ELSEWHERE},
    {"item_id": "msg_1"},
    {"item_id": "msg_1", "origin": ELSEWHERE},
    *({"extras": extras} for extras in EXTRAS),
)
PARTS = (
    *(Text("Hi", **fields) for fields in COMMON),
    Text(""),
    Text("Hi", (Citation(kind="url", url="https://example.org"),)),
    *(make_call("c1", "now", None, ARGUMENTS, **fields) for fields in COMMON),
    make_call("c1", "now", '{"city": "Basel"}'),
    make_call("c1", "now", "Basel"),
    make_call("c1", "now", " "),
    make_call("c1", "now", "Basel", kind="custom"),
    make_call("c1", "now", None, ARGUMENTS, signature="sig"),
    make_call("c1", "now", None, ARGUMENTS, wire_id=None, origin=HERE),
    make_call("c1", "now", None, ARGUMENTS, wire_id="c9", origin=HERE),
    *(make_result("c1", "sunny", **fields) for fields in COMMON),
    make_result("c1", ""),
    make_result("c1", ()),
    make_result("c1", "", data={"sky": "blue"}),
    make_result("c1", "sunny", data={"sky": "blue"}),
    make_result("c1", (Text("sunny"),)),
    make_result("c1", "rain", is_error=True),
    make_result("c1", "rain", is_error=False),
    make_result("c1", "rain", kind="custom"),
)
MESSAGES: tuple[dict[str, Any], ...] = (
    {},
    {"name": "Ada"},
    {"origin": HERE},
    *({"extras": extras} for extras in EXTRAS),
)
CALLS = (
    make_call("c1", "now", "{}", wire_id="c9", origin=HERE),
    make_call("c1", "now", "Basel", kind="custom"),
)
BEFORE = ((), *((Message(Role.ASSISTANT, (call,)),) for call in CALLS))
TARGETS = (TARGET, TARGET.relaxed)


@pytest.mark.parametrize("fields", MESSAGES)
def test_fast_path_equals_general_path(
    fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both paths agree for every part and role, also after a call with another id or kind."""
    requests = [
        Request(
            model="m",
            messages=(*before, make_message(role, (part,), **fields), Message.user("Go on.")),
        )
        for role, part, before in product(Role, PARTS, BEFORE)
    ]
    short = [_said(request) for request in requests]
    monkeypatch.setattr(MessageWriter, "_plain_item", lambda *_: None)
    assert short == [_said(request) for request in requests]


def _said(request: Request) -> Any:
    return [
        (encoded.body, encoded.losses, encoded.repairs)
        for encoded in (encode_request(request, target) for target in TARGETS)
    ]
