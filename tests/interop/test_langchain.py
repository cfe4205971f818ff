"""LangChain's messages and ours: there and back, equal or reported."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    message_chunk_to_message,
    messages_to_dict,
)
from langchain_core.messages import content as blocks

import dragoman
from dragoman import (
    FinishReason,
    Image,
    Message,
    Messages,
    Refusal,
    Role,
    ServerToolCall,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from dragoman.errors import InvalidInputError, LossError
from dragoman.interop import from_langchain, to_langchain
from dragoman.model import Origin
from dragoman.model.messages import make_message  # as a wire may have it
from tests.interop.conversations import ALL, PNG, said
from tests.model import strategies

SIGNED = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
ITEM = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}],
    "encrypted_content": "c2VhbA==",
}
CITED = {
    "type": "text",
    "text": "so",
    "citations": [
        {
            "type": "char_location",
            "cited_text": "so",
            "document_index": 0,
            "document_title": None,
            "start_char_index": 0,
            "end_char_index": 2,
        }
    ],
}
OBJECTS: dict[str, BaseMessage] = {
    "system": SystemMessage("Be brief."),
    "developer": SystemMessage("Be brief.", additional_kwargs={"__openai_role__": "developer"}),
    "user": HumanMessage("Hi", id="h1", name="bob"),
    "kwargs": HumanMessage("Hi", additional_kwargs={"lc_source": "x", "metadata": {"a": None}}),
    "unknown field": HumanMessage("Hi", example=True, mine={"a": [1]}),
    "bare texts": HumanMessage(["a", {"type": "text", "text": "b"}]),
    "standard media": HumanMessage(
        content_blocks=[
            blocks.create_image_block(base64=PNG, mime_type="image/png", detail="low"),
            blocks.create_image_block(url="https://example.com/a.png"),
            blocks.create_audio_block(base64="UklGRg==", mime_type="audio/wav"),
            blocks.create_video_block(file_id="file_1"),
            blocks.create_file_block(base64="JVBERi0=", mime_type="application/pdf"),
            blocks.create_plaintext_block(text="plain", title="notes"),
        ]
    ),
    "openai media": HumanMessage(
        [
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
            {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
            {"type": "file", "file": {"file_id": "file_1"}},
        ]
    ),
    "anthropic media": HumanMessage(
        [
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": PNG},
                "cache_control": {"type": "ephemeral"},
            },
            {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}},
        ]
    ),
    "media of version 0": HumanMessage(
        [{"type": "image", "source_type": "base64", "data": PNG, "mime_type": "image/png"}]
    ),
    "call": AIMessage("", tool_calls=[{"name": "f", "args": {"a": None}, "id": "c1"}]),
    "call without id": AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": None}]),
    "invalid call": AIMessage(
        "", invalid_tool_calls=[{"name": "f", "args": "{bad", "id": "c1", "error": "no JSON"}]
    ),
    "raw call": AIMessage(
        "",
        additional_kwargs={
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "f", "arguments": '{"a":  1}'},
                },
            ],
            "refusal": None,
        },
    ),
    "legacy call": AIMessage(
        "", additional_kwargs={"function_call": {"name": "f", "arguments": "{}"}}
    ),
    "anthropic": AIMessage(
        [
            SIGNED,
            {"type": "redacted_thinking", "data": "c2VhbA=="},
            CITED,
            {
                "type": "tool_use",
                "id": "t1",
                "name": "f",
                "input": {"a": 1},
                "caller": {"type": "direct"},
            },
        ],
        tool_calls=[{"name": "f", "args": {"a": 1}, "id": "t1"}],
        usage_metadata={
            "input_tokens": 10,
            "output_tokens": 5,
            "total_tokens": 15,
            "input_token_details": {"cache_read": 3, "cache_creation": 0, "ephemeral_1h": 0},
        },
        response_metadata={
            "model_provider": "anthropic",
            "model_name": "claude-opus-4-5",
            "stop_reason": "tool_use",
            "stop_sequence": None,
        },
        id="lc_run--1",
    ),
    "streamed tool use": AIMessage(
        [
            {
                "type": "tool_use",
                "id": "t1",
                "name": "f",
                "input": {},
                "partial_json": '{"a": 1}',
                "index": 1,
            }
        ],
        tool_calls=[{"name": "f", "args": {"a": 1}, "id": "t1"}],
    ),
    "responses": AIMessage(
        [
            ITEM,
            {
                "type": "text",
                "text": "Hi",
                "annotations": [
                    {
                        "type": "url_citation",
                        "url": "https://example.com",
                        "title": "t",
                        "start_index": 0,
                        "end_index": 2,
                    }
                ],
                "id": "msg_1",
            },
            {
                "type": "web_search_call",
                "id": "ws_1",
                "status": "completed",
                "action": {"type": "search"},
            },
        ],
        response_metadata={"model_provider": "openai", "id": "resp_1", "status": "completed"},
    ),
    "responses of version 0": AIMessage("Hi", additional_kwargs={"reasoning": ITEM}),
    "reasoning content": AIMessage(
        "Hi",
        additional_kwargs={"reasoning_content": "hm"},
        response_metadata={"model_provider": "deepseek", "finish_reason": "stop"},
    ),
    "refusal": AIMessage("", additional_kwargs={"refusal": "No."}),
    "standard blocks": AIMessage(
        [
            {"type": "reasoning", "reasoning": "hm", "extras": {"signature": "c2ln"}},
            {
                "type": "text",
                "text": "x",
                "annotations": [
                    {
                        "type": "citation",
                        "url": "https://example.com",
                        "start_index": 0,
                        "end_index": 1,
                    },
                    {"type": "non_standard_annotation", "value": {"a": 1}},
                ],
            },
            {"type": "tool_call", "id": "c1", "name": "f", "args": {}},
            {"type": "server_tool_call", "id": "s1", "name": "web_search", "args": {"q": "x"}},
            {
                "type": "server_tool_result",
                "tool_call_id": "s1",
                "status": "success",
                "output": [1],
            },
            {"type": "non_standard", "value": {"type": "mystery"}},
            {"type": "mystery", "a": None},
        ],
        tool_calls=[{"name": "f", "args": {}, "id": "c1"}],
        response_metadata={"output_version": "v1"},
    ),
    "gemini signatures": AIMessage(
        "",
        tool_calls=[{"name": "f", "args": {}, "id": "c1"}],
        additional_kwargs={"__gemini_function_call_thought_signatures__": {"c1": "c2ln"}},
        response_metadata={"model_provider": "google_genai"},
    ),
    "result": ToolMessage(content="r", tool_call_id="c1", name="f", artifact={"rows": [1]}),
    "failed result": ToolMessage(
        content="r", tool_call_id="c1", status="error", additional_kwargs={"a": 1}
    ),
    "result with media": ToolMessage(
        content=[
            "seen",
            {"type": "image", "base64": PNG, "mime_type": "image/png"},
            {"type": "tool_use"},
        ],
        tool_call_id="c1",
        id="t1",
    ),
    "function": FunctionMessage(content="r", name="f"),
    "chat": ChatMessage(content="Hi", role="Human"),
}


class TestObjects:
    """Theirs, ours, theirs."""

    @pytest.mark.parametrize("message", OBJECTS.values(), ids=OBJECTS)
    def test_come_back_equal(self, message: BaseMessage) -> None:
        """With every field, whether we understand it or not."""
        exported = to_langchain(from_langchain(message))
        assert exported.messages == [message]
        assert type(exported.messages[0]) is type(message)
        assert exported.losses == ()

    def test_come_back_equal_together(self) -> None:
        """A conversation of all of them."""
        exported = to_langchain(from_langchain(list(OBJECTS.values())))
        assert exported.messages == list(OBJECTS.values())

    @pytest.mark.parametrize("message", OBJECTS.values(), ids=OBJECTS)
    def test_come_back_from_a_document(self, message: BaseMessage) -> None:
        """What is needed to restore them is stored with the message."""
        stored = Messages.from_json(from_langchain(message).to_json())
        (again,) = to_langchain(stored).messages
        assert again.model_copy(update={"id": message.id}) == message  # storing assigns an id

    def test_data_is_not_stored_twice(self) -> None:
        """Not even the data of an image in a provider's own block."""
        for name in ("openai media", "anthropic media", "media of version 0"):
            assert from_langchain(OBJECTS[name]).to_json().count(PNG.encode()) == 1

    def test_dumps_are_read_as_the_objects(self) -> None:
        """As `messages_to_dict` writes them, into whatever store."""
        objects = list(OBJECTS.values())
        assert to_langchain(from_langchain(messages_to_dict(objects))).messages == objects

    def test_chunks_become_the_message_they_stand_for(self) -> None:
        """As LangChain itself converts them."""
        chunk = AIMessageChunk(
            content="Hi",
            tool_call_chunks=[{"name": "f", "args": '{"a": 1}', "id": "c1", "index": 0}],
        ) + AIMessageChunk(content="!", chunk_position="last")
        (message,) = to_langchain(from_langchain(chunk)).messages
        assert message == message_chunk_to_message(chunk)
        assert from_langchain(chunk)[0].tool_calls[0].arguments == {"a": 1}

    def test_subclasses_are_known(self) -> None:
        """By the class that they are derived from; back they come as that."""

        class Mine(HumanMessage):
            mood: str = "good"

        (message,) = from_langchain(Mine(content="Hi", mood="bad"))
        assert message == Message.user("Hi")
        (again,) = to_langchain(message).messages
        assert type(again) is HumanMessage
        assert again.model_dump()["mood"] == "bad"

    def test_an_artifact_that_is_not_json_is_reported(self) -> None:
        """The message is read all the same."""
        message = ToolMessage(content="r", tool_call_id="c1", artifact=object())
        exported = to_langchain(from_langchain(message))
        assert [loss.path for loss in exported.losses] == ["messages[0].extras"]
        assert "artifact" in exported.losses[0].reason
        with pytest.raises(LossError):
            to_langchain(from_langchain(message), strict=True)

    def test_other_objects_are_rejected(self) -> None:
        """The error names their type."""
        with pytest.raises(InvalidInputError, match="RemoveMessage"):
            from_langchain([RemoveMessage(id="x")])
        with pytest.raises(InvalidInputError, match="a int is not"):
            from_langchain([1])
        with pytest.raises(InvalidInputError, match="a str is not"):
            from_langchain("Hi")
        with pytest.raises(InvalidInputError, match="unknown role"):
            from_langchain(ChatMessage(content="x", role="narrator"))
        with pytest.raises(InvalidInputError, match="use a ToolMessage"):
            from_langchain(ChatMessage(content="x", role="tool"))


class TestMeaning:
    """What the objects say, in our terms."""

    def test_thinking_keeps_its_proof_and_its_origin(self) -> None:
        """So that it can go back to its maker."""
        (message,) = from_langchain(OBJECTS["anthropic"])
        first, second, text, call = message.parts
        assert first == Thinking("hm", signature="c2ln")
        assert second == Thinking("", "c2VhbA==", "redacted")
        assert isinstance(text, Text)
        assert text.citations[0].quote == "so"
        assert call == ToolCall("t1", "f", input={"a": 1})
        assert message.origin == Origin(
            dialect="anthropic", provider="anthropic", model="claude-opus-4-5"
        )
        assert message.finish is FinishReason.TOOL_CALLS
        assert message.usage is not None
        assert (message.usage.input, message.usage.cache_read, message.usage.total) == (7, 3, 15)

    def test_items_of_responses_are_read_as_such(self) -> None:
        """One item, two summaries, one seal."""
        for name in ("responses", "responses of version 0"):
            (message,) = from_langchain(OBJECTS[name])
            first, second, *_ = message.parts
            assert isinstance(first, Thinking)
            assert isinstance(second, Thinking)
            assert (first.text, first.data, first.item_id) == ("a", "c2VhbA==", "rs_1")
            assert (second.text, second.data, second.item_id) == ("b", None, "rs_1")

    def test_arguments_are_kept_to_the_byte(self) -> None:
        """The arguments of calls are unchanged.

        Whether LangChain has the provider's text or only text.
        """
        (raw,), (invalid,) = (from_langchain(OBJECTS[n]) for n in ("raw call", "invalid call"))
        assert raw.tool_calls[0].raw == '{"a":  1}'
        assert invalid.tool_calls[0].raw == "{bad"
        assert not invalid.tool_calls[0].has_valid_arguments

    def test_results_of_functions_answer_their_calls(self) -> None:
        """They have no call id, and are matched by the name of the function."""
        messages = from_langchain([OBJECTS["legacy call"], OBJECTS["function"]])
        assert messages[1].tool_results[0].call_id == messages[0].tool_calls[0].id

    def test_other_parts(self) -> None:
        """Refusals, the provider's own tools, media, roles, names and metadata."""
        assert from_langchain(OBJECTS["refusal"])[0].parts == (Refusal("No."),)
        kinds = [type(part) for part in from_langchain(OBJECTS["standard blocks"])[0].parts]
        assert ServerToolCall in kinds
        images = from_langchain(OBJECTS["openai media"])[0].media
        assert images[0] == Image(data=PNG, mime="image/png")
        assert from_langchain(OBJECTS["developer"])[0].role is Role.DEVELOPER
        assert from_langchain(OBJECTS["user"])[0].name == "bob"
        assert from_langchain(OBJECTS["kwargs"])[0].metadata == {"a": None}
        (result,) = from_langchain(OBJECTS["failed result"])[0].tool_results
        assert result.is_error is True


class TestEdits:
    """An edit wins over what was kept."""

    def test_of_a_text(self) -> None:
        """In a provider's own block."""
        (message,) = from_langchain(OBJECTS["anthropic"])
        parts = list(message.parts)
        parts[2] = parts[2].replace(text="otherwise")
        (again,) = to_langchain(message.replace(parts=tuple(parts))).messages
        assert again.content[2]["text"] == "otherwise"
        assert again.content[0] == SIGNED

    def test_of_a_call(self) -> None:
        """Everywhere that LangChain has it."""
        for name in ("anthropic", "raw call", "streamed tool use", "legacy call"):
            (message,) = from_langchain(OBJECTS[name])
            parts = tuple(
                ToolCall(part.id, part.name, input={"b": 2}) if isinstance(part, ToolCall) else part
                for part in message.parts
            )
            (again,) = to_langchain(message.replace(parts=parts)).messages
            assert [call["args"] for call in again.tool_calls] == [{"b": 2}]
            assert '"a"' not in again.model_dump_json()

    def test_of_an_image(self) -> None:
        """Whose old address would otherwise come back."""
        (message,) = from_langchain(OBJECTS["openai media"])
        parts = (message.parts[0].replace(data=PNG[:8]), *message.parts[1:])
        (again,) = to_langchain(message.replace(parts=parts)).messages
        assert again.content[0] == {"type": "image", "base64": PNG[:8], "mime_type": "image/png"}

    def test_of_facts(self) -> None:
        """Why it ended, names and metadata."""
        (message,) = from_langchain(OBJECTS["anthropic"])
        changed = message.replace(finish=FinishReason.LENGTH, name="claude", metadata={"b": 1})
        (again,) = to_langchain(changed).messages
        assert again.response_metadata["finish_reason"] == "length"
        assert "stop_reason" not in again.response_metadata
        assert again.name == "claude"
        assert again.additional_kwargs["metadata"] == {"b": 1}

    def test_of_a_group_of_results(self) -> None:
        """Results that were put together keep what each had."""
        results = [OBJECTS["result"], ToolMessage(content="r2", tool_call_id="c2", artifact=[2])]
        together = from_langchain(results).consolidated()
        assert len(together) == 1
        first, second = to_langchain(together).messages
        assert (first.artifact, second.artifact) == ({"rows": [1]}, [2])


class TestOurs:
    """Ours, theirs, ours."""

    @pytest.mark.parametrize("messages", ALL.values(), ids=ALL)
    def test_come_back_equal(self, messages: Messages) -> None:
        """All that was said, with usage, finish reasons and origins."""
        exported = to_langchain(messages, strict=True)
        again = from_langchain(exported.messages)
        assert list(again) == said(messages)
        for one, other in zip(again, said(messages), strict=True):
            assert (one.usage, one.finish, one.origin) == (other.usage, other.finish, other.origin)
            assert [c.raw_arguments for c in one.tool_calls] == [
                c.raw_arguments for c in other.tool_calls
            ]

    def test_langchain_understands_what_is_written(self) -> None:
        """Its own properties find texts, calls, reasoning and media."""
        answer = to_langchain(ALL["thinking"]).messages[1]
        assert answer.text == "It is so."
        assert answer.tool_calls[0]["id"] == "toolu_1"
        kinds = [block["type"] for block in answer.content_blocks]
        assert kinds == ["reasoning", "non_standard", "text", "tool_call"]
        shown = to_langchain(ALL["media"]).messages[0].content_blocks
        kinds = [block["type"] for block in shown]
        assert kinds == ["text", "image", "image", "audio", "file", "file"]

    def test_facts_without_a_field_are_listed(self) -> None:
        """They are no content, so `strict` accepts their loss."""
        exported = to_langchain(Message.user("Hi", created_at=1.0), strict=True)
        assert [fact.path for fact in exported.omitted] == ["messages[0].created_at"]

    def test_an_unknown_part_is_reported(self) -> None:
        """What no block can hold."""
        said = (Text("Hi"), ToolResult("c1", "x"), ToolCall("c2", "f"))
        message = make_message(Role.USER, said)
        assert len(to_langchain(message).messages) == 2


# --- generated

_texts = st.text(max_size=8)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | _texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_texts, inner, max_size=2),
    max_leaves=4,
)
_objects = st.dictionaries(_texts, _json, max_size=2)
_types = st.sampled_from(
    [
        "text",
        "reasoning",
        "image",
        "audio",
        "file",
        "text-plain",
        "video",
        "non_standard",
        "server_tool_call",
        "server_tool_result",
        "tool_call",
        "thinking",
        "tool_use",
        "image_url",
        "refusal",
        "input_audio",
        "document",
        "function_call",
        "web_search_call",
        "media",
        "x",
    ]
)
_keys = st.sampled_from(
    [
        "text",
        "reasoning",
        "base64",
        "url",
        "file_id",
        "mime_type",
        "id",
        "index",
        "extras",
        "name",
        "args",
        "thinking",
        "signature",
        "data",
        "source",
        "source_type",
        "annotations",
        "summary",
        "tool_call_id",
        "status",
        "output",
        "value",
        "input",
        "image_url",
        "file",
        "citations",
    ]
)
_blocks = st.builds(
    lambda kind, rest: {"type": kind, **rest},
    _types,
    st.dictionaries(_keys, _texts | _json, max_size=4),
)
_content = _texts | st.lists(_texts | _blocks, max_size=3)
_calls = st.lists(
    st.builds(
        lambda name, args, id: {"name": name, "args": args, "id": id, "type": "tool_call"},
        _texts,
        _objects,
        st.none() | st.sampled_from(["c1", "c2", "c3"]),
    ),
    max_size=3,
)
_kwargs = st.dictionaries(
    _texts
    | st.sampled_from(
        [
            "tool_calls",
            "function_call",
            "refusal",
            "reasoning_content",
            "reasoning",
            "metadata",
            "audio",
            "__openai_role__",
        ]
    ),
    _json,
    max_size=2,
)
_common: dict[str, st.SearchStrategy[Any]] = {
    "content": _content,
    "additional_kwargs": _kwargs,
    "response_metadata": st.dictionaries(
        _texts | st.sampled_from(["finish_reason", "stop_reason", "model_name", "model_provider"]),
        _json | st.sampled_from(["stop", "anthropic", "openai", "tool_use"]),
        max_size=2,
    ),
    "name": st.none() | _texts,
    "id": st.none() | _texts.filter(bool),
}
_theirs: st.SearchStrategy[BaseMessage] = st.one_of(
    st.builds(HumanMessage, **_common),
    st.builds(SystemMessage, **_common),
    st.builds(AIMessage, **_common, tool_calls=_calls),
    st.builds(
        ToolMessage,
        **_common,
        tool_call_id=st.sampled_from(["c1", "c2", "c3"]),
        artifact=_json,
        status=st.sampled_from(["success", "error"]),
    ),
    st.builds(FunctionMessage, **{**_common, "name": _texts}),
    st.builds(ChatMessage, **_common, role=st.sampled_from(["user", "assistant", "system", "AI"])),
)


class TestGenerated:
    """Whatever the libraries hold."""

    @given(st.lists(_theirs, max_size=3))
    def test_theirs_come_back_equal(self, messages: list[BaseMessage]) -> None:
        """Messages with anything in any field that takes anything."""
        exported = to_langchain(from_langchain(messages))
        assert exported.messages == messages
        assert exported.losses == ()

    @given(strategies.conversations)
    def test_ours_can_always_be_written(self, messages: Messages) -> None:
        """And read again, whatever they hold; nothing but our own errors."""
        exported = to_langchain(messages)
        again = from_langchain(exported.messages)
        texts = [part for m in messages for part in m.parts if type(part) is Text]
        found = [part.text for m in again for part in m.parts if type(part) is Text]
        assert len(found) >= len(texts) - len(exported.losses)


_BLOCKS: list[tuple[str, dict[str, Any]]] = [
    ("openai-responses", {"type": "input_text", "text": "a"}),
    ("openai-responses", {"type": "input_image", "image_url": "https://example.com/a.png"}),
    ("openai-responses", {"type": "input_file", "file_id": "file_1"}),
    ("openai-chat", {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}),
    ("openai-chat", {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}),
    ("anthropic", {"type": "document", "source": {"type": "url", "url": "https://a.example/b"}}),
    ("anthropic", {"type": "container_upload", "file_id": "file_1"}),
]


@pytest.mark.parametrize(("dialect", "block"), _BLOCKS, ids=lambda each: str(each)[:40])
def test_a_providers_block_is_read_like_its_dialect(dialect: str, block: dict[str, Any]) -> None:
    """Blocks of every provider and kind become the same parts as in the provider's dialect."""
    field = "input" if dialect == "openai-responses" else "messages"
    body = {"model": "m", "max_tokens": 9, field: [{"role": "user", "content": [block]}]}
    expected = dragoman.dialect(dialect).decode_request(body).messages[0].parts
    (message,) = from_langchain([HumanMessage([block])])
    assert message.parts == expected
