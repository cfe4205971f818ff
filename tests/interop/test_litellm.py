"""LiteLLM's messages and ours: OpenAI's shape, with signed thinking beside it.

LiteLLM takes long to install, so it is in the extra `peers`; `make test-all` has it.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import pytest

import dragoman
from dragoman import FinishReason, Message, Messages, Thinking, ToolCall
from dragoman.interop import from_litellm, to_litellm
from dragoman.model import Origin
from tests.corpus import Recording
from tests.interop.conversations import ALL, THINKING, said


@pytest.fixture(scope="module", name="litellm")
def _litellm() -> Any:
    """The library, which would fetch a price list when it is imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "LITELLM_LOCAL_MODEL_COST_MAP", "True")
        library = pytest.importorskip("litellm", reason="litellm is not installed (extra: peers)")
    with warnings.catch_warnings():
        # pydantic's remark on a type of LiteLLM's, made when the class is first used
        warnings.filterwarnings("ignore", message=".*`ReadOnly` qualifier", category=UserWarning)
        library.Message(content="")
        library.ModelResponse()
    return library


BLOCKS = [
    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
    {"type": "redacted_thinking", "data": "c2VhbA=="},
]
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":  1}'}}


def test_a_message_with_signed_thinking(litellm: Any) -> None:
    """The blocks are thinking with its proof; `reasoning_content` repeats their text."""
    given = litellm.Message(
        content="Hi", tool_calls=[CALL], thinking_blocks=BLOCKS, reasoning_content="hm"
    )
    (message,) = from_litellm(given)
    assert message.parts[:2] == (
        Thinking("hm", signature="c2ln"),
        Thinking("", "c2VhbA==", "redacted"),
    )
    assert message.parts[0].origin == Origin(dialect="anthropic")
    assert message.tool_calls == (ToolCall("c1", "f", raw='{"a":  1}'),)
    exported = to_litellm(message, strict=True)
    assert exported.messages == [given]
    assert type(exported.messages[0]) is litellm.Message


def test_a_whole_response(litellm: Any) -> None:
    """With usage, finish reason, model and id."""
    given = litellm.ModelResponse(
        id="r1",
        model="claude-opus-4-5",
        choices=[
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {"role": "assistant", "content": None, "tool_calls": [CALL],
                            "thinking_blocks": BLOCKS[:1], "reasoning_content": "hm"},
            }
        ],
        usage={"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    )  # fmt: skip
    for answer in (given, given.choices[0]):
        (message,) = from_litellm(answer)
        assert message.finish is FinishReason.TOOL_CALLS
        assert message.parts[0] == Thinking("hm", signature="c2ln")
    (message,) = from_litellm(given)
    assert message.usage is not None
    assert message.usage.total == 15
    assert message.origin is not None
    assert message.origin.response_id == "r1"


def test_a_conversation_comes_back_equal(litellm: Any) -> None:
    """Dicts come back as dicts, and the model's messages as objects."""
    talk: list[Any] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image_url",
            "image_url": {"url": "https://example.com/a.png"}}]},
        litellm.Message(content=None, tool_calls=[CALL]),
        {"role": "tool", "tool_call_id": "c1", "name": "f", "content": "x"},
        litellm.Message(content="Bye", provider_specific_fields={"a": 1}),
    ]  # fmt: skip
    assert to_litellm(from_litellm(talk), strict=True).messages == talk


@pytest.mark.usefixtures("litellm")
@pytest.mark.parametrize("messages", ALL.values(), ids=ALL)
def test_ours_come_back(messages: Messages) -> None:
    """Texts, calls and thinking are unchanged, except for reported losses."""
    exported = to_litellm(messages)
    again = from_litellm(exported.messages)
    is_shown = any("media" in loss.reason or "citations" in loss.path for loss in exported.losses)
    assert is_shown or [m.text for m in again][:3] == [m.text for m in said(messages)][:3]
    assert [c for m in again for c in m.tool_calls] == [c for m in messages for c in m.tool_calls]
    assert [p for m in again for p in m.parts if isinstance(p, Thinking)] == [
        p for m in messages for p in m.parts if isinstance(p, Thinking)
    ]


@pytest.mark.usefixtures("litellm")
def test_unsigned_thinking_of_another_is_reported() -> None:
    """There is no field in which LiteLLM would send it back."""
    origin = Origin(dialect="gemini")
    message = Message.assistant(Thinking("hm", origin=origin), "Hi")
    assert [loss.path for loss in to_litellm(message).losses] == ["messages[0].parts[0]"]
    assert [loss.path for loss in to_litellm(THINKING).losses if ".parts" in loss.path] == [
        "messages[1].parts[2].citations"
    ]


@pytest.mark.corpus(provider_api="openai_chat", streaming=False, status=200, features=["tool_call"])
def test_recorded_answers_in_its_objects(litellm: Any, recording: Recording) -> None:
    """Read by the library, then by us."""
    body = recording.response_body
    try:
        expected = dragoman.dialect("openai-chat").decode_response(body).message
        answer = litellm.ModelResponse(**body)
    except Exception:  # noqa: BLE001 - recordings of faults
        pytest.skip("the recorded body is not an answer that the library reads")
    (message,) = from_litellm(answer)
    assert message.text == expected.text
    assert [c.raw for c in message.tool_calls] == [c.raw for c in expected.tool_calls]
