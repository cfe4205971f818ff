"""The vendors' own SDKs: their objects into ours, ours into what they take."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types import Message as ClaudeMessage
from anthropic.types import TextBlock, ThinkingBlock, ToolUseBlock
from hypothesis import given
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from openai.types.responses import Response as OpenAIResponse
from pydantic import TypeAdapter

import dragoman
from dragoman import FinishReason, Message, Messages, Refusal, Role, Text, Thinking
from dragoman.errors import InvalidInputError, LossError
from dragoman.interop import (
    Exported,
    from_anthropic,
    from_google,
    from_openai,
    to_anthropic,
    to_google,
    to_openai,
)
from tests.corpus import Recording
from tests.interop.conversations import ALL, MEDIA, PNG, THINKING, TOOLS, said
from tests.interop.libraries import types
from tests.model import strategies

COMPLETION = ChatCompletion.model_validate(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "gpt-5",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "logprobs": None,
                "message": {
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
                },
            }
        ],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 40},
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
    }
)
CLAUDES = ClaudeMessage.model_validate(
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-5",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "c2VhbA=="},
            {
                "type": "text",
                "text": "so",
                "citations": [
                    {
                        "type": "char_location",
                        "cited_text": "so",
                        "document_index": 0,
                        "document_title": "d",
                        "start_char_index": 0,
                        "end_char_index": 2,
                    }
                ],
            },
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": None}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 3},
    }
)
GEMINIS = types.GenerateContentResponse.model_validate(
    {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "hm", "thought": True},
                        {
                            "functionCall": {"name": "f", "args": {"a": None}},
                            "thoughtSignature": b"\xff\xfe\xfb",
                        },
                        {"functionCall": {"name": "f", "args": {"a": 2}}},
                    ],
                },
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 10,
            "candidatesTokenCount": 5,
            "thoughtsTokenCount": 3,
            "totalTokenCount": 18,
        },
        "modelVersion": "gemini-3-pro",
        "responseId": "r1",
    }
)
ITEMS = OpenAIResponse.model_validate(
    {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "completed",
        "model": "gpt-5",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "output": [
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "hm"}],
                "encrypted_content": "c2VhbA==",
            },
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
            },
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": "f",
                "arguments": '{"a":  1}',
                "status": "completed",
            },
        ],
        "usage": {
            "input_tokens": 10,
            "output_tokens": 5,
            "total_tokens": 15,
            "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 2},
        },
    }
)


class TestOpenAI:
    """Chat Completions and Responses."""

    def test_a_whole_completion_is_its_message(self) -> None:
        """With usage, finish reason, time, model and id."""
        (message,) = from_openai(COMPLETION)
        (call,) = message.tool_calls
        assert (call.id, call.name, call.raw) == ("call_1", "mcp.read-file", '{"a":  1}')
        assert message.finish is FinishReason.TOOL_CALLS
        assert message.usage is not None
        assert (message.usage.input, message.usage.cache_read) == (60, 40)
        assert (message.usage.output, message.usage.thinking) == (15, 5)
        assert message.created_at == 1_700_000_000
        assert message.origin is not None
        assert (message.origin.model, message.origin.response_id) == ("gpt-5", "chatcmpl-1")

    def test_dicts_and_objects_in_one_list_are_read(self) -> None:
        """A list may mix both, as in the vendors' tutorials."""
        talk = from_openai(
            [
                {"role": "system", "content": "Be brief."},
                "What is in it?",
                COMPLETION.choices[0].message,
                {"role": "tool", "tool_call_id": "call_1", "content": "text"},
            ]
        )
        assert [m.role.value for m in talk] == ["system", "user", "assistant", "tool"]
        assert talk[3].tool_results[0].call_id == talk[2].tool_calls[0].id

    def test_objects_inside_dicts_are_read(self) -> None:
        """A message that was put together from the pieces of another."""
        calls = COMPLETION.choices[0].message.tool_calls
        (message,) = from_openai({"role": "assistant", "content": None, "tool_calls": calls})
        assert message.tool_calls[0].raw == '{"a":  1}'

    def test_messages_come_back_as_they_were(self) -> None:
        """Every field that the library set comes back, and no other."""
        message = ChatCompletionMessage.model_validate(
            {
                "role": "assistant",
                "content": "Hi",
                "refusal": None,
                "annotations": [],
                "mine": {"a": None},
            }
        )
        (wire,) = to_openai(from_openai(message)).messages
        assert wire == message.model_dump(exclude_unset=True)

    def test_a_choice_is_its_message(self) -> None:
        """With why it ended."""
        assert from_openai(COMPLETION.choices[0])[0].finish is FinishReason.TOOL_CALLS

    def test_several_choices_are_refused(self) -> None:
        """A conversation continues from one choice, and only the caller knows which."""
        two = COMPLETION.model_copy(update={"choices": [*COMPLETION.choices] * 2})
        with pytest.raises(InvalidInputError, match="ChatCompletion has 2 choices"):
            from_openai(two)

    def test_responses_and_their_items(self) -> None:
        """The whole response with its facts, and the items as they are put into `input`."""
        (whole,) = from_openai(ITEMS)
        assert whole.usage is not None
        assert whole.usage.thinking == 2
        talk = from_openai(
            [
                {"role": "user", "content": "Hi"},
                *ITEMS.output,
                {"type": "function_call_output", "call_id": "call_1", "output": "x"},
            ]
        )
        assert [m.role.value for m in talk] == ["user", "assistant", "tool"]
        for message in (whole, talk[1]):
            thinking, text, call = message.parts
            assert isinstance(thinking, Thinking)
            assert (thinking.text, thinking.data, thinking.item_id) == ("hm", "c2VhbA==", "rs_1")
            assert isinstance(text, Text)
            assert text.item_id == "msg_1"
            assert call == dragoman.ToolCall("call_1", "f", raw='{"a":  1}')
        exported = to_openai(talk[1:2], api="responses")
        assert exported.messages[0]["encrypted_content"] == "c2VhbA=="

    def test_instructions(self) -> None:
        """They become the first message."""
        talk = from_openai(
            [{"type": "message", "role": "user", "content": "Hi"}], instructions="Be brief."
        )
        assert [m.role for m in talk] == [Role.SYSTEM, Role.USER]

    @pytest.mark.parametrize("messages", ALL.values(), ids=ALL)
    def test_ours_are_what_the_library_types(self, messages: Messages) -> None:
        """A type checker in the program would agree."""
        from openai.types.chat import ChatCompletionMessageParam

        param: TypeAdapter[Any] = TypeAdapter(ChatCompletionMessageParam)
        for wire in to_openai(messages).messages:
            param.validate_python(wire)

    def test_items_are_what_the_library_types(self) -> None:
        """But for answers with citations, whose type demands an id that only OpenAI can give."""
        from openai.types.responses import ResponseInputItemParam

        param: TypeAdapter[Any] = TypeAdapter(ResponseInputItemParam)
        for name in ("plain", "tools"):
            for wire in to_openai(ALL[name], api="responses").messages:
                param.validate_python(wire)

    @pytest.mark.parametrize("api", ["chat", "responses"])
    @pytest.mark.parametrize("name", ["plain", "tools"])
    def test_ours_come_back(self, api: Any, name: str) -> None:
        """But for what is reported."""
        exported = to_openai(ALL[name], api=api)
        again = from_openai(exported.messages)
        lost = {loss.path for loss in exported.losses}
        assert lost <= {"messages[2].parts[1].is_error"}
        assert [m.text for m in again] == [m.text for m in said(ALL[name])]
        assert [c.raw_arguments for m in again for c in m.tool_calls] == [
            c.raw_arguments for m in ALL[name] for c in m.tool_calls
        ]

    def test_what_has_no_place_is_reported(self) -> None:
        """Thinking of another, metadata; and the facts that no request has a field for."""
        exported = to_openai([m.replace(metadata={"a": 1}) for m in THINKING[:1]] + [*THINKING[1:]])
        paths = [loss.path for loss in exported.losses]
        assert paths.count("messages[0].metadata") == 1
        assert "messages[1].parts[0]" in paths
        facts = {fact.path for fact in to_openai(TOOLS).omitted}
        assert facts == {"messages[1].usage", "messages[1].finish", "messages[3].finish"}
        with pytest.raises(LossError) as error:
            to_openai(THINKING, strict=True)
        assert error.value.losses


class TestAnthropic:
    """Messages, blocks and the system prompt."""

    def test_a_whole_message(self) -> None:
        """With signed and sealed thinking, citations, usage and finish reason."""
        (message,) = from_anthropic(CLAUDES)
        thinking, redacted, text, call = message.parts
        assert thinking == Thinking("hm", signature="c2ln")
        assert redacted == Thinking("", "c2VhbA==", "redacted")
        assert isinstance(text, Text)
        assert text.citations[0].quote == "so"
        assert call == dragoman.ToolCall("toolu_1", "f", input={"a": None})
        assert message.finish is FinishReason.TOOL_CALLS
        assert message.usage is not None
        assert message.usage.cache_read == 3

    def test_a_refusal_is_read(self) -> None:
        """Its words stand beside the content."""
        refused = CLAUDES.model_copy(deep=True)
        refused = ClaudeMessage.model_validate(
            {
                **refused.model_dump(exclude_unset=True),
                "stop_reason": "refusal",
                "stop_details": {"type": "refusal", "explanation": "No.", "category": None},
            }
        )
        assert Refusal("No.") in from_anthropic(refused)[0].parts

    def test_blocks_in_a_dict_come_back_as_they_were(self) -> None:
        """A response's content under the assistant role, as programs append it, is unchanged."""
        talk = from_anthropic(
            [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": CLAUDES.content},
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "toolu_1",
                            "content": "x",
                            "is_error": True,
                        }
                    ],
                },
            ],
            system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        )
        exported = to_anthropic(talk, strict=True)
        assert exported.messages[1]["content"] == [
            block.model_dump(exclude_unset=True) for block in CLAUDES.content
        ]
        assert exported.messages[2]["content"][0]["is_error"] is True
        assert exported.system == [
            {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
        ]

    def test_blocks_made_by_hand(self) -> None:
        """As objects of the library's classes."""
        content = [
            ThinkingBlock(type="thinking", thinking="hm", signature="c2ln"),
            TextBlock(type="text", text="Hi", citations=None),
            ToolUseBlock(type="tool_use", id="t1", name="f", input={}),
        ]
        (message,) = from_anthropic({"role": "assistant", "content": content})
        assert [type(part).__name__ for part in message.parts] == ["Thinking", "Text", "ToolCall"]

    @pytest.mark.parametrize("messages", ALL.values(), ids=ALL)
    def test_ours_are_what_the_library_types(self, messages: Messages) -> None:
        """A type checker in the program would agree."""
        from anthropic.types import MessageParam

        param: TypeAdapter[Any] = TypeAdapter(MessageParam)
        for wire in to_anthropic(messages).messages:
            param.validate_python(wire)

    def test_ours_come_back(self) -> None:
        """Thinking, tools and media; the system prompt is outside the list."""
        for messages in (THINKING, TOOLS):
            exported = to_anthropic(messages)
            again = from_anthropic(exported.messages, system=exported.system)
            assert [m.parts for m in again if m.role is Role.ASSISTANT][:1] == [
                m.parts for m in messages if m.role is Role.ASSISTANT
            ][:1] or exported.losses
        assert to_anthropic(ALL["plain"]).system == "Be brief."

    def test_an_object_of_another_library_is_refused(self) -> None:
        """By its type."""
        with pytest.raises(InvalidInputError, match="ChatCompletion is a message of openai-chat"):
            from_anthropic(COMPLETION)
        with pytest.raises(InvalidInputError, match="a object is not a message"):
            from_anthropic([object()])


class TestGoogle:
    """Contents, parts, files and responses."""

    def test_a_whole_response(self) -> None:
        """With thoughts, signatures, usage and finish reason."""
        (message,) = from_google(GEMINIS)
        thought, first, second = message.parts
        assert thought == Thinking("hm", form="summary")
        assert isinstance(first, dragoman.ToolCall)
        assert isinstance(second, dragoman.ToolCall)
        assert first.signature == "//77"
        assert first.id != second.id
        assert message.usage is not None
        assert message.usage.thinking == 3

    def test_results_find_the_calls_of_a_response(self) -> None:
        """Neither has an id: they are matched by order."""
        answers = types.Content(
            role="user",
            parts=[
                types.Part.from_function_response(name="f", response={"output": value})
                for value in ("one", "two")
            ],
        )
        assert GEMINIS.candidates
        content = GEMINIS.candidates[0].content
        for given_answer in (GEMINIS, GEMINIS.candidates[0], content):
            talk = from_google(["Hi", given_answer, answers])
            assert [m.role.value for m in talk] == ["user", "assistant", "tool"]
            ids = [call.id for call in talk[1].tool_calls]
            assert [result.call_id for result in talk[2].tool_results] == ids

    def test_loose_parts_are_one_message(self) -> None:
        """Adjacent texts, parts and files are one user message, as in the library."""
        talk = from_google(
            [
                "Compare",
                types.Part.from_bytes(data=b"\x89PNG\r\n\x1a\n\xff\xfe", mime_type="image/png"),
                types.Part.from_uri(
                    file_uri="https://example.com/a.pdf", mime_type="application/pdf"
                ),
                types.File(uri="https://example.com/files/1", mime_type="video/mp4"),
                types.ModelContent("Hello"),
                types.UserContent("Bye"),
            ],
            system_instruction="Be brief.",
        )
        assert [m.role.value for m in talk] == ["system", "user", "assistant", "user"]
        kinds = [type(part).__name__ for part in talk[1].parts]
        assert kinds == ["Text", "Image", "File", "Video"]
        assert talk[1].media[0].content == b"\x89PNG\r\n\x1a\n\xff\xfe"

    def test_contents_come_back_equal(self) -> None:
        """Objects for objects, signatures and bytes included."""
        assert GEMINIS.candidates
        content = GEMINIS.candidates[0].content
        talk = [types.UserContent("Hi"), content]
        exported = to_google(from_google(talk))
        assert exported.messages[1] == content
        assert exported.messages[0].parts == talk[0].parts

    @pytest.mark.parametrize("messages", ALL.values(), ids=ALL)
    def test_ours_are_contents(self, messages: Messages) -> None:
        """Whose text and data are what was said."""
        exported = to_google(messages)
        assert all(isinstance(content, types.Content) for content in exported.messages)
        again = from_google(exported.messages, system_instruction=exported.system)
        texts = [part.text for m in messages for part in m.parts if isinstance(part, Text)]
        found = [part.text for m in again for part in m.parts if isinstance(part, Text)]
        assert [text for text in found if not text.startswith("(Shown by")] == texts

    def test_media_keep_their_bytes(self) -> None:
        """In the library's objects they are bytes."""
        data = [
            part.inline_data.data
            for part in to_google(MEDIA).messages[0].parts
            if part.inline_data is not None
        ]
        assert data[0] == MEDIA[0].media[0].content
        assert PNG not in str(data)


@pytest.mark.parametrize("export", [to_openai, to_anthropic, to_google])
class TestAll:
    """What holds for each."""

    def test_nothing_makes_nothing(self, export: Any) -> None:
        """No messages are an empty list, not an error."""
        exported = export([])
        assert (exported.messages, exported.system, exported.losses) == ([], None, ())

    def test_open_calls_stay_open(self, export: Any) -> None:
        """Their results are still to come: none are made up."""
        open_ended = Messages.of([*TOOLS[:2]])
        assert len(export(open_ended).messages) == 2
        assert len(export(open_ended.append(Message.tool("call_1", "dry"))).messages) == 3

    def test_a_single_message_is_accepted(self, export: Any) -> None:
        """Its repr contains none of its content."""
        exported: Exported = export(Message.user("secret"))
        assert len(exported.messages) == 1
        assert repr(exported) == "Exported(1 messages, 0 losses)"

    def test_other_values_are_rejected(self, export: Any) -> None:
        """The error names their type."""
        with pytest.raises(InvalidInputError, match="Messages must be Message, not dict"):
            export([{"role": "user", "content": "secret"}])
        with pytest.raises(InvalidInputError, match="not int"):
            export(1)

    @given(messages=strategies.conversations)
    def test_ours_can_be_written_or_are_refused(self, export: Any, messages: Messages) -> None:
        """Whatever they hold; nothing but our own errors."""
        try:
            exported = export(messages)
        except dragoman.DragomanError:
            return
        assert isinstance(exported.messages, list)


def _arguments(call: dragoman.ToolCall) -> Any:
    """Byte for byte, but where the wire has an object: the library may order its fields."""
    is_text = "type" not in call.extras.get("openai-responses", {})
    return call.raw_arguments if is_text else json.loads(call.raw_arguments)


@pytest.mark.corpus(provider_api=["openai_chat", "openai_responses", "anthropic", "gemini"],
                    streaming=False, status=200)  # fmt: skip
def test_recorded_answers_in_the_libraries_objects(recording: Recording) -> None:
    """Read by the library, then by us: what the dialect reads out of the bytes themselves."""
    body, api = recording.response_body, recording.row.provider_api
    kinds: dict[str, tuple[Any, Any, str]] = {
        "openai_chat": (ChatCompletion, from_openai, "openai-chat"),
        "openai_responses": (OpenAIResponse, from_openai, "openai-responses"),
        "anthropic": (ClaudeMessage, from_anthropic, "anthropic"),
        "gemini": (types.GenerateContentResponse, from_google, "gemini"),
    }
    kind, read, name = kinds[api]
    try:
        expected = dragoman.dialect(name).decode_response(body)
        answer = kind.model_validate(body) if api == "gemini" else kind.construct(**body)
    except (dragoman.DragomanError, ValueError, TypeError, AttributeError, UserWarning):
        pytest.skip("the recorded body is not an answer that the library reads")
    if len(expected.choices) != 1:
        with pytest.raises(InvalidInputError):
            read(answer)
        return
    (message,) = read(answer)
    assert message.text == expected.message.text
    assert [c.name for c in message.tool_calls] == [c.name for c in expected.tool_calls]
    assert [_arguments(c) for c in message.tool_calls] == [
        _arguments(c) for c in expected.tool_calls
    ]
    assert message.finish == expected.message.finish
    if api != "gemini":  # its library reads only the fields that it knows
        assert message == expected.message
        assert message.usage == expected.message.usage
