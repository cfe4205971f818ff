"""Objects of other libraries: known, unknown, and hostile."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock, Mock

import groq.types.chat as groq
import ollama
import pytest
from anthropic.types import TextBlock
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from openai.types.chat import (
    ChatCompletionChunk,
    ChatCompletionMessage,
    ParsedChatCompletionMessage,
)
from openai.types.responses import ResponseFunctionToolCall
from pydantic import BaseModel
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)

from dragoman import Message, Messages, Text, Thinking
from dragoman.errors import InvalidInputError
from dragoman.interop.objects import read_object
from tests.interop.libraries import types
from tests.interop.test_sdks import CLAUDES, COMPLETION, GEMINIS, ITEMS

SECRET = "s3cret"


class TestKnown:
    """Objects that are read."""

    def test_messages_of_sdks_become_dicts(self) -> None:
        """They are decoded together with their neighbours."""
        assert read_object(COMPLETION.choices[0].message) == {
            "role": "assistant",
            "content": None,
            "refusal": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "mcp.read-file", "arguments": '{"a":  1}'},
                }
            ],
        }
        call = ResponseFunctionToolCall(
            type="function_call", call_id="c1", name="f", arguments="{}"
        )
        assert read_object(call) == {
            "type": "function_call",
            "call_id": "c1",
            "name": "f",
            "arguments": "{}",
        }
        block = TextBlock(type="text", text="Hi", citations=None)
        assert read_object(block) == {"type": "text", "text": "Hi", "citations": None}
        content = types.Content(role="user", parts=[types.Part(text="Hi")])
        assert read_object(content) == {"role": "user", "parts": [{"text": "Hi"}]}
        part = types.Part.from_bytes(data=b"\xff\xfe\xfb", mime_type="image/png")
        assert read_object(part) == {"inlineData": {"data": "//77", "mimeType": "image/png"}}

    def test_whole_responses_are_messages(self) -> None:
        """The message has the response's usage and calls."""
        for answer in (COMPLETION, CLAUDES, GEMINIS, ITEMS):
            message = read_object(answer)
            assert isinstance(message, Message)
            assert message.usage is not None
            assert message.tool_calls

    def test_groq_and_ollama(self) -> None:
        """Their libraries have classes of their own."""
        spoken = groq.ChatCompletionMessage(role="assistant", content="Hi", reasoning="hm")
        assert read_object(spoken) == {"role": "assistant", "content": "Hi", "reasoning": "hm"}
        said = ollama.Message(
            role="user", content="Hi", images=[ollama.Image(value=b"\xff\xfe\xfb")]
        )
        assert read_object(said) == {"role": "user", "content": "Hi", "images": ["//77"]}
        answer = ollama.ChatResponse(
            model="qwen3",
            message=ollama.Message(role="assistant", content="Hi", thinking="hm"),
            done=True,
            done_reason="stop",
            prompt_eval_count=3,
            eval_count=2,
        )
        message = read_object(answer)
        assert isinstance(message, Message)
        assert message.parts == (Thinking("hm"), Text("Hi"))
        assert message.usage is not None
        assert message.usage.total == 5

    def test_messages_of_other_libraries_are_messages(self) -> None:
        """LangChain's are one message each; pydantic-ai's may be several."""
        assert read_object(HumanMessage("Hi")) == Message.user("Hi")
        assert read_object(ModelResponse(parts=[TextPart("Hi")])) == Message.assistant("Hi")
        two = read_object(ModelRequest(parts=[UserPromptPart("a"), UserPromptPart("b")]))
        assert two == [Message.user("a"), Message.user("b")]

    def test_adjacent_objects_are_read_together(self) -> None:
        """Instructions that every request repeats are read once."""
        request = ModelRequest(parts=[UserPromptPart("Hi")], instructions="Be brief.")
        read = Messages.from_any([request, request, HumanMessage("Bye")])
        assert [message.role.value for message in read] == ["system", "user", "user", "user"]

    def test_parsed_fields_are_left_out(self) -> None:
        """The fields that parsing helpers add are redundant."""

        class Mine(BaseModel):
            a: int

        message: Any = ParsedChatCompletionMessage[Mine].model_validate(
            {"role": "assistant", "content": '{"a": 1}', "parsed": Mine(a=1)}
        )
        assert read_object(message) == {"role": "assistant", "content": '{"a": 1}'}

    def test_stream_chunks_are_refused(self) -> None:
        """They are not messages, and the error explains what to do."""
        chunk = ChatCompletionChunk.model_validate(
            {
                "id": "1",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "m",
                "choices": [],
            }
        )
        with pytest.raises(InvalidInputError, match="ChatCompletionChunk"):
            read_object(chunk)
        with pytest.raises(InvalidInputError, match="RemoveMessage"):
            read_object(RemoveMessage(id="x"))


class TestUnknown:
    """Objects that are no messages."""

    @pytest.mark.parametrize(
        "value",
        [None, 1, "Hi", b"Hi", [], {}, {"role": "user"}, object(), Mock(), MagicMock(), Message,
         HumanMessage, ModelRequest, TextPart("Hi"), types.Tool(), Message.user("Hi"), Messages()],
        ids=lambda value: type(value).__name__,
    )  # fmt: skip
    def test_other_values_are_not_read(self, value: object) -> None:
        """Mocks have any attribute, and classes have their instances' names."""
        assert read_object(value) is None

    def test_a_similar_class_is_not_read(self) -> None:
        """The attributes of an object do not count."""

        class Message:  # of no library
            role = "user"
            content = SECRET

            def model_dump(self, **_options: Any) -> dict[str, Any]:
                return {"role": "user", "content": SECRET}

        assert read_object(Message()) is None


def _cycle() -> dict[str, Any]:
    cycle: dict[str, Any] = {"secret": SECRET}
    cycle["inner"] = cycle
    return cycle


def _deep() -> Any:
    value: Any = SECRET
    for _ in range(5000):
        value = [value]
    return value


class _Explodes(HumanMessage):
    def model_dump(self, **_options: Any) -> dict[str, Any]:
        raise RuntimeError(SECRET)


class _Lies(ChatCompletionMessage):
    def model_dump(self, **_options: Any) -> Any:
        return SECRET


def _raise(_self: object) -> Any:
    raise RuntimeError(SECRET)


_Odd: Any = type("_Odd", (), {"__class__": property(_raise)})  # `isinstance` uses it


HOSTILE: dict[str, Any] = {
    "model_dump raises": _Explodes(content="Hi"),
    "model_dump lies": _Lies.model_construct(role="assistant", content="Hi"),
    "content of a wrong type": HumanMessage.model_construct(content=_Odd()),
    "content is a number": ChatCompletionMessage.model_construct(role="assistant", content=5),
    "content is itself": HumanMessage.model_construct(content=[_cycle()]),
    "content is deep": AIMessage.model_construct(content=_deep(), type="ai"),
    "role of a wrong type": ChatCompletionMessage.model_construct(role=[], content=SECRET),
    "calls of a wrong type": AIMessage.model_construct(
        content="", tool_calls=[SECRET, {"name": 1, "args": [SECRET], "id": {}}], type="ai"
    ),
    "everything of a wrong type": AIMessage.model_construct(
        content=1,
        tool_calls=1,
        usage_metadata=1,
        response_metadata=1,
        additional_kwargs=1,
        name=1,
        id=1,
        type="ai",
        invalid_tool_calls={},
    ),
    "no content": HumanMessage.model_construct(type="human"),
    "no type": HumanMessage.model_construct(content="Hi", type=None),
    "result of nothing": ToolMessage.model_construct(type="tool", content=None),
    "parts of a wrong type": ModelResponse.__new__(ModelResponse),
    "a cycle in a request": ModelRequest(parts=[ToolReturnPart("f", _cycle(), "c1")]),
    "parts that are texts": ModelResponse(parts=[SECRET]),  # type: ignore[list-item]
    "a part of None": ModelRequest(parts=[None]),  # type: ignore[list-item]
    "google of a wrong type": types.Content.model_construct(parts=5, role=[]),
    "keys that are numbers": HumanMessage.model_construct(content=[{1: SECRET}], type="human"),
    "an infinity": HumanMessage("Hi", additional_kwargs={"a": float("nan")}),
    "half a character": HumanMessage("\ud800"),
    "bytes": HumanMessage.model_construct(content=[{"type": "media", "data": b"x"}], type="human"),
}


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_hostile_objects_are_read_or_refused(value: Any) -> None:
    """Only our own error is raised, without quotes in its text or causes."""
    try:
        found = read_object(value)
    except InvalidInputError as error:
        shown = f"{error!r} {error.__cause__!r} {error.__context__!r}"
        assert SECRET not in shown
    else:
        assert found is None or isinstance(found, (dict, list, Message))


def test_arguments_with_helper_field_names_are_kept() -> None:
    """They belong to the tool, not to the helper."""
    from anthropic.types import ParsedMessage

    wire = {**CLAUDES.model_dump(exclude_unset=True)}
    wire["content"] = [{"type": "tool_use", "id": "t1", "name": "f", "input": {"parsed": 1}}]
    message = read_object(ParsedMessage[Any].construct(**wire))
    assert isinstance(message, Message)
    assert message.tool_calls[0].arguments == {"parsed": 1}
