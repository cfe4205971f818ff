"""Every dialect to every other: all user content, calls and results arrive."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from dragoman import Request, Role, Text
from tests.corpus import Corpus
from tests.wire.recorded import bodies, has_conversation

PAIRS = [(a, b) for a in dragoman.dialects() for b in dragoman.dialects() if a != b]


def _said(request: Request) -> tuple[list[str], list[Any], int]:
    """The user's texts, the calls with their arguments, and the number of their results.

    Results of calls that only the provider has stored (`previous_response_id`) don't count.
    """
    users = [
        part.text
        for message in request.messages
        for part in message.parts
        if isinstance(part, Text) and message.role is Role.USER and part.text.strip()
    ]
    calls = [
        (call.name, dict(call.arguments) if _is_plain(call) else None)
        for message in request.messages
        for call in message.tool_calls
    ]
    called = {call.id for message in request.messages for call in message.tool_calls}
    results = [r for message in request.messages for r in message.tool_results]
    return users, calls, sum(result.call_id in called for result in results)


def _can_be_said(request: Request) -> bool:
    """Whether the request has any content, and valid JSON Schemas."""
    if request.state and (request.state.previous_response_id or request.state.conversation):
        return False  # most of it is stored by the provider
    types = [tool.parameters.get("type") for tool in request.tools
             if isinstance(tool, dragoman.ToolDefinition) and tool.parameters]  # fmt: skip
    has_words = any(m.text or m.tool_calls or m.media for m in request.messages)
    return has_words and all(isinstance(kind, (str, list, type(None))) for kind in types)


def _is_plain(call: dragoman.ToolCall) -> bool:
    return call.kind == "function" and call.has_valid_arguments


def _is_same_call(ours: tuple[str, Any], theirs: tuple[str, Any]) -> bool:
    return ours[0] == theirs[0] and ours[1] in (None, theirs[1])


@pytest.mark.corpus
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_no_texts_calls_or_results_are_lost(corpus: Corpus, source: str, target: str) -> None:
    """Recorded requests keep them in another dialect and back again."""
    failures = []
    for body in bodies(corpus, source):
        if body.kind != "request":
            continue
        request = body.decode()
        assert isinstance(request, Request)
        if not has_conversation(request, target):
            continue
        encoded = dragoman.dialect(target).encode_request(request)
        arrived = dragoman.dialect(target).decode_request(encoded.to_bytes(), path=encoded.path)
        users, calls, results = _said(request)
        their_users, their_calls, their_results = _said(arrived)
        back = dragoman.dialect(source).decode_request(
            dragoman.dialect(source).encode_request(arrived).to_bytes(), path=body.path
        )
        heard = "\n".join(their_users)
        holds = (
            all(text in heard for text in users)
            and len(calls) == len(their_calls)
            and all(map(_is_same_call, calls, their_calls))
            and results == their_results
            and _said(back)[1:] == (their_calls, their_results)
            and all(text in "\n".join(_said(back)[0]) for text in users)
        )
        if not holds:
            failures.append(body.recording.row.file)
    assert failures == []


@pytest.mark.corpus
@pytest.mark.parametrize(
    "target", [n for n in dragoman.dialects() if hasattr(dragoman.dialect(n), "check")]
)
@pytest.mark.parametrize("source", dragoman.dialects())
def test_translated_requests_pass_the_target_s_rules(
    corpus: Corpus, source: str, target: str
) -> None:
    """Recorded histories break no rule of the dialect that they are translated to."""
    if source == target:
        return  # `test_refused` checks the recordings themselves
    speaker: Any = dragoman.dialect(target)  # dialects that have rules
    found = []
    for body in bodies(corpus, source):
        request = body.decode()
        if isinstance(request, Request) and _can_be_said(request):
            encoded = speaker.encode_request(request)
            broken = [v.rule for v in speaker.check(encoded.body) if v.severity == "error"]
            found += [(body.recording.row.file, rule) for rule in broken]
    assert found == []
