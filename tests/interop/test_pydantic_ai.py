"""pydantic-ai's messages and ours: there and back, equal or reported.

What is compared with is the library's own reload: some of its objects come back from its own JSON
as others (`BinaryContent` as `BinaryImage`), and ours go through that JSON.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic_ai import messages as theirs
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, ModelResponse
from pydantic_ai.usage import RequestUsage

from dragoman import (
    Audio,
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
    Video,
)
from dragoman.errors import InvalidInputError, LossError
from dragoman.interop import from_pydantic_ai, to_pydantic_ai
from dragoman.model import Origin
from tests.interop.conversations import ALL
from tests.model import strategies

AT = datetime(2026, 11, 16, 12, 30, 15, 123456, tzinfo=UTC)
PICTURE = theirs.BinaryContent(b"\x89PNG\r\n\x1a\n\xff\xfe\xfb", media_type="image/png")


class Forecast(BaseModel):
    """What a tool may return."""

    rain: bool = False


def request(*parts: Any, **fields: Any) -> ModelRequest:
    """A request with these parts."""
    return ModelRequest(parts=list(parts), **fields)


def response(*parts: Any, **fields: Any) -> ModelResponse:
    """A response with these parts."""
    return ModelResponse(parts=list(parts), timestamp=AT, **fields)


def returned(content: Any, **fields: Any) -> theirs.ToolReturnPart:
    """A result of a tool."""
    return theirs.ToolReturnPart("f", content, "c1", timestamp=AT, **fields)


OBJECTS: dict[str, Any] = {
    "prompt": request(theirs.UserPromptPart("Hi", timestamp=AT)),
    "prompts": request(
        theirs.SystemPromptPart("Be brief.", timestamp=AT),
        theirs.SystemPromptPart("Be kind.", timestamp=AT, dynamic_ref="kind"),
        theirs.UserPromptPart("Hi", timestamp=AT),
        theirs.UserPromptPart("And?", timestamp=AT),
        timestamp=AT,
        run_id="r1",
        conversation_id="k1",
        metadata={"a": None},
    ),
    "instructions": request(theirs.UserPromptPart("Hi"), instructions="Be brief."),
    "media": request(
        theirs.UserPromptPart(
            [
                "See:",
                theirs.ImageUrl("https://example.com/a.png", vendor_metadata={"detail": "low"}),
                theirs.AudioUrl("https://example.com/a.mp3", force_download=True),
                theirs.VideoUrl("https://example.com/a.mp4", vendor_metadata={"fps": 2}),
                theirs.DocumentUrl("https://example.com/a.pdf", identifier="mine"),
                PICTURE,
                theirs.CachePoint(ttl="1h"),
                theirs.UploadedFile("file_1", provider_name="openai", media_type="image/png"),
                theirs.TextContent("said", metadata={"a": 1}),
                theirs.StructuredContent({"a": 1}, tag="state"),
            ]
        )
    ),
    "only a cache point": request(theirs.UserPromptPart([theirs.CachePoint()])),
    "results": request(
        returned("dry"),
        returned({"rain": False}, metadata={"took": 1.5}),
        returned([1, {"a": None}]),
        returned(None),
        returned(Forecast()),
        returned("bad", outcome="failed"),
        returned("no", outcome="denied"),
        theirs.UserPromptPart("Go on.", timestamp=AT),
    ),
    "results with media": request(
        returned(["seen", theirs.ImageUrl("https://example.com/a.png"), PICTURE, {"a": 1}]),
        returned(PICTURE),
        returned([theirs.UploadedFile("file_1", provider_name="anthropic")]),
        returned({"nested": theirs.ImageUrl("https://example.com/a.png")}),
    ),
    "data that looks like a file": request(
        returned([{"kind": "image-url", "url": "https://example.com/a.png"}]),
        returned({"kind": "binary", "data": "not base64"}),
    ),
    "retries": request(
        returned("again", outcome="retried", retry=theirs.RetryInfo(cause="model_retry")),
        theirs.RetryFeedbackPart(
            "again", retry=theirs.RetryInfo(cause="no_output", attempt=1), timestamp=AT
        ),
    ),
    "other parts": request(
        theirs.ToolAvailabilityDeltaPart(tools_added=["x"]),
        theirs.UserPromptPart("Hi"),
        theirs.CapabilityLoadDeltaPart(loaded=["y"]),
    ),
    "empty request": request(),
    "empty response": response(),
    "answer": response(
        theirs.TextPart("Hi"),
        usage=RequestUsage(
            input_tokens=100,
            cache_read_tokens=30,
            cache_write_tokens=10,
            output_tokens=20,
            details={"reasoning_tokens": 5},
            cost=Decimal("0.25"),
        ),
        model_name="gpt-5",
        provider_name="openai",
        provider_url="https://api.openai.com/v1",
        provider_response_id="resp_1",
        provider_details={"finish_reason": "stop", "x": None},
        finish_reason="stop",
        metadata={"b": 1},
        run_id="r1",
    ),
    "calls": response(
        theirs.TextPart("One moment."),
        theirs.ToolCallPart("f", '{"a":  1}', "c1"),
        theirs.ToolCallPart("f", {"a": [None]}, "c2", id="fc_1", provider_name="openai"),
        theirs.ToolCallPart("f", None, "c3"),
        theirs.ToolCallPart("f", "{bad", "c4"),
        finish_reason="tool_call",
        provider_name="openai",
    ),
    "thinking of Claude": response(
        theirs.ThinkingPart("hm", signature="c2ln", provider_name="anthropic"),
        theirs.ThinkingPart(
            "", id="redacted_thinking", signature="c2VhbA==", provider_name="anthropic"
        ),
        provider_name="anthropic",
        model_name="claude-opus-4-5",
    ),
    "thinking of GPT": response(
        theirs.ThinkingPart("a", id="rs_1", signature="c2VhbA==", provider_name="openai"),
        theirs.ThinkingPart("b", id="rs_1", provider_name="openai"),
        theirs.ThinkingPart("", id="rs_2", signature="c2VhbA==", provider_name="openai"),
        theirs.TextPart("Hi", id="msg_1", provider_name="openai"),
        provider_name="openai",
    ),
    "thinking of Gemini": response(
        theirs.ThinkingPart("hm"),
        theirs.ToolCallPart(
            "f",
            {},
            "c1",
            provider_name="google",
            provider_details={"thought_signature": "c2ln", "x": 1},
        ),
        provider_name="google",
    ),
    "thinking of DeepSeek": response(
        theirs.ThinkingPart("hm", id="reasoning_content", provider_name="deepseek"),
        theirs.TextPart("Hi"),
        provider_name="deepseek",
    ),
    "thinking of several": response(
        theirs.ThinkingPart("hm", signature="c2ln", provider_name="anthropic"),
        theirs.TextPart("Hi"),
        provider_name="openai",
    ),
    "citations": response(
        theirs.TextPart(
            "So it is.",
            citations=[
                theirs.Citation(
                    [
                        theirs.WebCitationSource(
                            "https://example.com", title="t", excerpts=["a", "b"]
                        ),
                        theirs.DocumentCitationSource(title="d"),
                    ],
                    anchor=theirs.ContentCitationAnchor(start=0, end=2),
                ),
                theirs.Citation([theirs.WebCitationSource("https://example.org")]),
            ],
        )
    ),
    "native tools": response(
        theirs.NativeToolCallPart("web_search", {"q": "x"}, "s1", provider_name="anthropic"),
        theirs.NativeToolReturnPart(
            "web_search",
            [{"url": "x", "sealed": "y"}],
            "s1",
            timestamp=AT,
            provider_name="anthropic",
        ),
        provider_name="anthropic",
    ),
    "files": response(
        theirs.FilePart(PICTURE, id="ig_1", provider_name="openai", provider_details={"a": 1})
    ),
    "compaction": response(theirs.CompactionPart("short", provider_name="anthropic")),
    "speech": response(theirs.SpeechPart(speaker="assistant", transcript="Hi")),
    "interrupted": response(theirs.TextPart("Hi"), state="interrupted"),
}


def reloaded(messages: list[Any]) -> list[Any]:
    """What the library makes of its own JSON."""
    return ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(messages))


class TestObjects:
    """Theirs, ours, theirs."""

    @pytest.mark.parametrize("message", OBJECTS.values(), ids=OBJECTS)
    def test_come_back_equal(self, message: Any) -> None:
        """With every field, whether we understand it or not."""
        exported = to_pydantic_ai(from_pydantic_ai(message))
        assert exported.messages == reloaded([message])
        assert exported.losses == ()

    def test_come_back_equal_together(self) -> None:
        """A conversation of all of them: nothing moves into a neighbour."""
        objects = list(OBJECTS.values())
        assert to_pydantic_ai(from_pydantic_ai(objects)).messages == reloaded(objects)

    @pytest.mark.parametrize("message", OBJECTS.values(), ids=OBJECTS)
    def test_come_back_from_a_document(self, message: Any) -> None:
        """What is needed to restore them is stored with the message."""
        stored = Messages.from_json(from_pydantic_ai(message).to_json())
        assert to_pydantic_ai(stored).messages == reloaded([message])

    def test_dumps_are_read_as_the_objects(self) -> None:
        """As the library's adapter writes them, into whatever store."""
        objects = list(OBJECTS.values())
        dumped = ModelMessagesTypeAdapter.dump_python(objects, mode="json")
        assert to_pydantic_ai(from_pydantic_ai(dumped)).messages == reloaded(objects)

    def test_deprecated_parts_are_read(self) -> None:
        """An old retry part is read as a failed result or as a user message."""
        retry: Any = vars(theirs)["RetryPromptPart"]
        with pytest.warns(Warning, match="RetryPromptPart"):
            message = request(
                retry("again", tool_name="f", tool_call_id="c1", timestamp=AT),
                retry("again", timestamp=AT),
            )
        read = from_pydantic_ai(message)
        assert [m.role for m in read] == [Role.TOOL, Role.USER]
        assert read[0].tool_results[0].is_error is True
        assert to_pydantic_ai(read).messages == reloaded([message])

    def test_metadata_that_is_not_json_is_reported(self) -> None:
        """The message is read all the same."""
        exported = to_pydantic_ai(from_pydantic_ai(request(returned("r", metadata=object()))))
        assert [loss.path for loss in exported.losses] == ["messages[0].extras"]
        with pytest.raises(LossError):
            exported.or_raise()

    def test_other_objects_are_rejected(self) -> None:
        """The error names their type."""
        with pytest.raises(InvalidInputError, match="a TextPart is not a message of pydantic-ai"):
            from_pydantic_ai([theirs.TextPart("secret")])
        with pytest.raises(InvalidInputError, match="must be request or response"):
            from_pydantic_ai([{"role": "user", "content": "secret"}])


class TestMeaning:
    """What the objects say, in our terms."""

    def test_a_request_is_several_messages(self) -> None:
        """System prompts are one, each prompt is one, and the results of a round are one."""
        prompts = from_pydantic_ai(OBJECTS["prompts"])
        assert [m.role.value for m in prompts] == ["system", "user", "user"]
        assert [part.text for part in prompts[0].parts if isinstance(part, Text)] == [
            "Be brief.",
            "Be kind.",
        ]
        assert prompts[0].metadata == {"a": None}
        results = from_pydantic_ai(OBJECTS["results"])
        assert [m.role.value for m in results] == ["tool", "user"]
        assert len(results[0].tool_results) == 7

    def test_instructions_become_a_system_message_once(self) -> None:
        """However many requests repeat them; a change of them counts."""
        talk = [OBJECTS["instructions"], response(theirs.TextPart("Hi")), OBJECTS["instructions"]]
        other = request(theirs.UserPromptPart("Bye"), instructions="Be kind.")
        read = from_pydantic_ai([*talk, other])
        assert [m.text for m in read if m.role is Role.SYSTEM] == ["Be brief.", "Be kind."]

    def test_results(self) -> None:
        """Text, JSON, files and failures."""
        dry, data, listed, nothing, model, bad, denied = from_pydantic_ai(OBJECTS["results"])[
            0
        ].tool_results
        assert (dry.content, dry.is_error, dry.tool_name) == ("dry", False, "f")
        assert (data.data, listed.data, nothing.data) == ({"rain": False}, [1, {"a": None}], None)
        assert model.data == {"rain": False}
        assert bad.is_error is True
        assert denied.is_error is True
        (message,) = from_pydantic_ai(OBJECTS["results with media"])
        seen = message.tool_results[0].content
        assert [type(part) for part in seen] == [Text, Image, Image, Text]

    def test_media(self) -> None:
        """Media by URL, inline and uploaded are read.

        Cache points apply to the part before them.
        """
        (message,) = from_pydantic_ai(OBJECTS["media"])
        text, image, audio, video, _document, inline, uploaded, *_ = message.parts
        assert text == Text("See:")
        assert image == Image(url="https://example.com/a.png", mime="image/png", detail="low")
        assert isinstance(audio, Audio)
        assert isinstance(video, Video)
        assert isinstance(inline, Image)
        assert inline.content == PICTURE.data
        assert inline.cache is not None
        assert inline.cache.ttl == "1h"
        assert isinstance(uploaded, Image)
        assert uploaded.file_id == "file_1"

    def test_answers(self) -> None:
        """Usage without double counting, the finish reason and the model are read."""
        (message,) = from_pydantic_ai(OBJECTS["answer"])
        assert message.usage is not None
        usage = message.usage
        assert (usage.input, usage.cache_read, usage.cache_write) == (60, 30, 10)
        assert (usage.output, usage.thinking) == (15, 5)
        assert message.finish is FinishReason.STOP
        assert message.created_at == AT.timestamp()
        assert message.origin == Origin(
            dialect="openai-responses", provider="openai", model="gpt-5", response_id="resp_1"
        )

    def test_calls_keep_their_text(self) -> None:
        """Byte for byte, and objects as objects."""
        (message,) = from_pydantic_ai(OBJECTS["calls"])
        one, two, _three, four = message.tool_calls
        assert one.raw == '{"a":  1}'
        assert two.input == {"a": [None]}
        assert not four.has_valid_arguments

    def test_thinking(self) -> None:
        """Signed, sealed and summarised, each as its provider has it."""
        claude = from_pydantic_ai(OBJECTS["thinking of Claude"])[0]
        assert claude.parts == (
            Thinking("hm", signature="c2ln"),
            Thinking("", "c2VhbA==", "redacted"),
        )
        assert claude.origin is not None
        assert claude.origin.dialect == "anthropic"
        first, second, *_ = from_pydantic_ai(OBJECTS["thinking of GPT"])[0].parts
        assert isinstance(first, Thinking)
        assert (first.text, first.data, first.item_id) == ("a", "c2VhbA==", "rs_1")
        assert second.item_id == "rs_1"
        (call,) = from_pydantic_ai(OBJECTS["thinking of Gemini"])[0].tool_calls
        assert call.signature == "c2ln"
        mixed = from_pydantic_ai(OBJECTS["thinking of several"])[0]
        assert mixed.origin is not None
        assert mixed.origin.dialect == "openai-chat"
        assert mixed.parts[0].origin is not None
        assert mixed.parts[0].origin.dialect == "anthropic"

    def test_other_parts(self) -> None:
        """Citations, the provider's own tools, and generated files."""
        (text,) = from_pydantic_ai(OBJECTS["citations"])[0].parts
        assert isinstance(text, Text)
        assert [c.url for c in text.citations] == [
            "https://example.com",
            None,
            "https://example.org",
        ]
        call, _result = from_pydantic_ai(OBJECTS["native tools"])[0].parts
        assert isinstance(call, ServerToolCall)
        (file,) = from_pydantic_ai(OBJECTS["files"])[0].parts
        assert isinstance(file, Image)


class TestEdits:
    """An edit wins over what was kept."""

    def test_of_texts_and_facts(self) -> None:
        """In requests and responses."""
        (prompt,) = from_pydantic_ai(OBJECTS["prompt"])
        (again,) = to_pydantic_ai(prompt.replace(parts=(Text("Bye"),))).messages
        assert again.parts[0].content == "Bye"
        (answer,) = from_pydantic_ai(OBJECTS["answer"])
        changed = answer.replace(finish=FinishReason.LENGTH, metadata={}, usage=None)
        (again,) = to_pydantic_ai(changed).messages
        assert again.finish_reason == "length"
        assert again.metadata is None
        assert again.usage == RequestUsage()

    def test_of_instructions(self) -> None:
        """One change changes them in all requests that repeat them."""
        talk = [OBJECTS["instructions"], response(theirs.TextPart("Hi")), OBJECTS["instructions"]]
        system, *others = from_pydantic_ai(talk)
        edited = Messages.of([system.replace(parts=(Text("Be kind."),)), *others])
        found = [m.instructions for m in to_pydantic_ai(edited).messages if m.kind == "request"]
        assert found == ["Be kind.", "Be kind."]

    def test_of_results(self) -> None:
        """The value that a tool returned is written, with the files in it."""
        (message,) = from_pydantic_ai(request(returned(["seen", PICTURE])))
        (result,) = message.tool_results
        image = Image.from_url("https://example.com/b.png", "image/png")
        changed = result.replace(content=(Text("other"), image))
        (again,) = to_pydantic_ai(message.replace(parts=(changed,))).messages
        assert again.parts[0].content == ["other", theirs.ImageUrl("https://example.com/b.png")]

    def test_appended_messages_are_requests_of_their_own(self) -> None:
        """Messages appended to a conversation don't change those before them."""
        talk = from_pydantic_ai([OBJECTS["prompt"]]).append(Message.user("And?"))
        first, second = to_pydantic_ai(talk).messages
        assert [first] == reloaded([OBJECTS["prompt"]])
        assert second.parts[0].content == "And?"


class TestOurs:
    """Ours, theirs, ours."""

    @pytest.mark.parametrize("messages", ALL.values(), ids=ALL)
    def test_come_back_equal(self, messages: Messages) -> None:
        """All that was said, with usage, finish reasons, origins and the text of calls."""
        exported = to_pydantic_ai(messages, strict=True)
        again = from_pydantic_ai(exported.messages)
        assert [m.replace(metadata={}) for m in again] == list(messages)
        for one, other in zip(again, messages, strict=True):
            assert (one.usage, one.finish, one.origin) == (other.usage, other.finish, other.origin)
            assert [c.raw_arguments for c in one.tool_calls] == [
                c.raw_arguments for c in other.tool_calls
            ]

    def test_turns_alternate(self) -> None:
        """All messages between two responses become one request."""
        kinds = [m.kind for m in to_pydantic_ai(ALL["plain"]).messages]
        assert kinds == ["request", "response", "request"]

    def test_what_has_no_place_is_reported(self) -> None:
        """Names, refusals, file names, opaque parts of others, and finish reasons."""
        messages = [
            Message.user("Hi", Image.from_url("https://example.com/a.png", name="a"), name="bob"),
            Message.assistant(Refusal("No."), finish=FinishReason.REFUSAL),
        ]
        exported = to_pydantic_ai(messages)
        assert {loss.path for loss in exported.losses} == {
            "messages[0].name",
            "messages[0].parts[1].name",
            "messages[1].parts[0].type",
        }
        assert [fact.path for fact in exported.omitted] == ["messages[1].finish"]
        with pytest.raises(LossError):
            to_pydantic_ai(messages, strict=True)

    def test_what_pydantic_can_not_hold_is_reported(self) -> None:
        """Half characters, and arguments of a provider's own tool that are a list."""
        exported = to_pydantic_ai(
            [Message.user("\ud800"), Message.assistant(ServerToolCall("search", input=[1]))]
        )
        assert exported.messages[0].parts[0].content == "\ufffd"
        assert exported.messages[1].parts[0].args == "[1]"
        paths = [loss.path for loss in exported.losses]
        assert paths == ["messages[1].parts[0].input", "messages"]

    def test_results_find_the_names_of_their_tools(self) -> None:
        """pydantic-ai wants them on each."""
        talk = [
            Message.assistant(tool_calls=[ToolCall.create("c1", "weather", {})]),
            Message.tool(ToolResult.success("c1", "dry")),
        ]
        assert to_pydantic_ai(talk).messages[1].parts[0].tool_name == "weather"


# --- generated

_texts = st.text(max_size=8)
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_texts, inner, max_size=2),
    max_leaves=4,
)
_objects = st.dictionaries(_texts, _json, max_size=2)
_maybe = st.none() | _texts
_times = st.datetimes(timezones=st.just(UTC))
_bytes = st.binary(max_size=9)
_urls = st.sampled_from(["https://example.com/a", "https://example.com/b"])
_files = st.one_of(
    st.builds(
        theirs.ImageUrl,
        _urls,
        media_type=st.just("image/png"),
        vendor_metadata=st.none() | _objects,
        force_download=st.booleans(),
    ),
    st.builds(theirs.DocumentUrl, _urls, media_type=st.just("application/pdf"), identifier=_maybe),
    st.builds(
        theirs.BinaryContent,
        _bytes,
        media_type=st.sampled_from(["image/png", "audio/wav", "text/plain"]),
        vendor_metadata=st.none() | _objects,
    ),
    st.builds(
        theirs.UploadedFile,
        _texts,
        provider_name=st.sampled_from(["openai", "google-cloud", "bedrock"]),
        media_type=st.just("image/png"),
    ),
)
_items = (
    _texts
    | _files
    | st.builds(theirs.TextContent, _texts, metadata=_json)
    | st.builds(theirs.CachePoint, ttl=st.sampled_from(["5m", "1h"]))
)
_returns = _json | _files | st.lists(_json | _files, max_size=3)
_of_requests: st.SearchStrategy[Any] = st.one_of(
    st.builds(theirs.SystemPromptPart, _texts, timestamp=_times, context_id=_maybe),
    st.builds(theirs.UserPromptPart, _texts | st.lists(_items, max_size=3), timestamp=_times),
    st.builds(
        theirs.ToolReturnPart,
        _texts,
        _returns,
        _texts,
        timestamp=_times,
        metadata=_json,
        outcome=st.sampled_from(["success", "failed", "denied", "interrupted"]),
    ),
    st.builds(
        theirs.RetryFeedbackPart,
        _texts,
        timestamp=_times,
        retry=st.just(theirs.RetryInfo(cause="no_output")),
    ),
)
_providers = st.none() | st.sampled_from(["openai", "anthropic", "google", "other"])
_provided: dict[str, st.SearchStrategy[Any]] = {
    "id": st.none() | st.sampled_from(["rs_1", "msg_1", "redacted_thinking", "x"]),
    "provider_name": _providers,
    "provider_details": st.none()
    | st.dictionaries(st.sampled_from(["thought_signature", "x"]), _json, max_size=2),
}
_of_responses: st.SearchStrategy[Any] = st.one_of(
    st.builds(theirs.TextPart, _texts, **_provided),
    st.builds(theirs.ThinkingPart, _texts, **_provided, signature=_maybe),
    st.builds(theirs.ToolCallPart, _texts, st.none() | _texts | _objects, _texts, **_provided),
    st.builds(
        theirs.NativeToolCallPart, _texts, st.none() | _texts | _objects, _texts, **_provided
    ),
    st.builds(
        theirs.FilePart, _files.filter(lambda f: isinstance(f, theirs.BinaryContent)), **_provided
    ),
)
_usages = st.builds(
    RequestUsage,
    input_tokens=st.integers(0, 99),
    output_tokens=st.integers(0, 99),
    cache_read_tokens=st.integers(0, 99),
    cache_write_tokens=st.integers(0, 99),
    output_reasoning_tokens=st.integers(0, 99),
    details=st.dictionaries(st.sampled_from(["reasoning_tokens", "x"]), st.integers(0, 99)),
)
_theirs = st.one_of(
    st.builds(
        ModelRequest,
        parts=st.lists(_of_requests, max_size=3),
        instructions=_maybe,
        timestamp=st.none() | _times,
        run_id=_maybe,
        metadata=st.none() | _objects,
    ),
    st.builds(
        ModelResponse,
        parts=st.lists(_of_responses, max_size=3),
        usage=_usages,
        model_name=_maybe,
        timestamp=_times,
        provider_name=_providers,
        provider_details=st.none() | _objects,
        provider_response_id=_maybe,
        finish_reason=st.none() | st.sampled_from(["stop", "length", "error", "tool_call"]),
        metadata=st.none() | _objects,
    ),
)


class TestGenerated:
    """Whatever the libraries hold."""

    @given(st.lists(_theirs, max_size=3))
    def test_theirs_come_back_equal(self, messages: list[Any]) -> None:
        """Messages with anything in any field that takes anything."""
        exported = to_pydantic_ai(from_pydantic_ai(messages))
        assert exported.messages == reloaded(messages)
        assert exported.losses == ()

    @given(strategies.conversations)
    def test_ours_can_always_be_written(self, messages: Messages) -> None:
        """And read again, whatever they hold; nothing but our own errors."""
        exported = to_pydantic_ai(messages)
        again = from_pydantic_ai(exported.messages)
        texts = [part for m in messages for part in m.parts if type(part) is Text]
        found = [part.text for m in again for part in m.parts if type(part) is Text]
        assert len(found) >= len(texts) - len(exported.losses)


@pytest.mark.parametrize("finish", FinishReason)
def test_every_finish_reason_is_one_that_the_library_knows(finish: FinishReason) -> None:
    """A finish reason without an equivalent becomes the nearest one or is left out.

    And that is reported.
    """
    call = ToolCall("c1", "f", raw="{}")
    messages = Messages(
        Message.assistant("Hi", call, finish=finish),
        Message.tool(ToolResult("c1", "no", is_error=True)),
        Message.assistant(call.replace(id="c2")),
        Message.tool(ToolResult("c2", "yes")),
    )
    exported = to_pydantic_ai(messages)
    assert reloaded(exported.messages) == exported.messages
    again = from_pydantic_ai(exported.messages)
    assert [each.tool_results[0].is_error for each in again if each.tool_results] == [True, False]
    assert again[0].finish is finish or [fact.path for fact in exported.omitted] == [
        "messages[0].finish"
    ]
