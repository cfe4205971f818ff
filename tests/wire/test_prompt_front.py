"""Clients that send prompts: OpenAI's completions, and Ollama's `generate`."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

import dragoman
from dragoman.errors import DragomanError, InvalidInputError, InvalidRequest, Overloaded
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
    UsageUpdate,
)
from dragoman.model.jsontext import dumps
from dragoman.model.media import Image
from dragoman.model.messages import Message
from dragoman.model.parts import Origin, Refusal, Text, Thinking
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.ollama.services_context import decode_context, encode_context
from dragoman.wire.prompt_front import PromptFront, prompt_front
from tests.corpus import Corpus
from tests.model.strategies import json_values
from tests.wire.streamed import Script, scripts
from tests.wire.test_front import FRONTS, answered, picked

NAMES = ("openai-chat", "ollama")
TYPES = {"openai-chat": "openai.types:Completion", "ollama": "ollama:GenerateResponse"}
STOP = FinishReason.STOP


def _front(name: str, **fields: Any) -> PromptFront:
    return prompt_front(name, {"model": "m", "prompt": "Hi", **fields})


def _said(*parts: Any, finish: FinishReason = STOP, **fields: Any) -> Response:
    message = Message.empty(Role.ASSISTANT).replace_unchecked(parts=parts)
    return Response(choices=(Choice(0, message, finish),), **fields)


def _check(name: str, body: dict[str, Any]) -> None:
    """A body or chunk matches its vendor's type; a chunk may lack a finish reason."""
    module, _, kind = TYPES[name].partition(":")
    sdk = pytest.importorskip(module)
    if name == "openai-chat":
        choices = [
            {**choice, "finish_reason": choice["finish_reason"] or "stop"}
            for choice in body["choices"]
        ]
        body = {**body, "choices": choices}
        assert body["id"]
        assert body["created"]
    else:
        assert not body["created_at"].startswith("1970")
    assert body["model"]
    adapter: TypeAdapter[Any] = TypeAdapter(getattr(sdk, kind))
    adapter.validate_json(json.dumps(body), strict=True)


def _frames(name: str, data: bytes) -> list[dict[str, Any]]:
    if name == "ollama":
        return [json.loads(line) for line in data.splitlines()]
    lines = [line.removeprefix("data: ") for line in data.decode().split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def _text(name: str, frames: list[dict[str, Any]]) -> str:
    if name == "ollama":
        return "".join(frame["response"] for frame in frames)
    return "".join(choice["text"] for frame in frames for choice in frame["choices"])


# --- requests


def test_a_completions_prompt_is_a_user_message() -> None:
    """Settings are those of a chat; unsupported fields are reported for every target."""
    front = _front(
        "openai-chat", max_tokens=5, n=2, best_of=4, logprobs=3, stop=["x"], temperature=0.5,
        user="u", suffix="!", seed=7, logit_bias={"50256": -100}, stream=True,
    )  # fmt: skip
    request = front.request
    assert [message.text for message in request.messages] == ["Hi"]
    sampling = request.sampling
    assert (sampling.max_tokens, sampling.choices, sampling.stop) == (5, 2, ("x",))
    assert (sampling.logprobs, sampling.top_logprobs, sampling.seed) == (True, 3, 7)
    assert request.stream is True
    for name in dragoman.dialects():
        losses = dragoman.dialect(name).encode_request(request.replace(stream=False)).losses
        assert {"extras.suffix", "extras.best_of"} <= {loss.path for loss in losses}, name


@pytest.mark.parametrize("fields", [{"best_of": 1}, {"n": 2, "best_of": 2}, {"suffix": None},
                                    {"suffix": ""}, {"echo": False}, {"logprobs": None},
                                    {"best_of": None, "n": None}])  # fmt: skip
def test_defaults_are_no_loss(fields: dict[str, Any]) -> None:
    """`best_of` of one, an empty suffix and null are no losses."""
    request = _front("openai-chat", **fields).request
    assert dragoman.dialect("openai-chat").encode_request(request).losses == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": [1, 2]}, {"prompt": [[1], [2]]}, {"prompt": []}, {"prompt": ["a", 1]},
        {"prompt": {}}, {"prompt": 5}, {"echo": "yes"}, {"logprobs": True}, {"n": 0},
        {"n": "two", "best_of": 3}, {"best_of": -1}, {"suffix": []}, {"echo": True, "logprobs": 1},
    ],
)  # fmt: skip
def test_completions_that_cannot_be_read_are_refused(fields: dict[str, Any]) -> None:
    """Token ids are refused too, as only the model can decode them."""
    with pytest.raises(DragomanError) as caught:
        _front("openai-chat", **fields)
    assert dragoman.Front("openai-chat").error(caught.value).status == 400


def test_a_generate_prompt_is_a_user_message() -> None:
    """Images and a system prompt are read; unsupported fields are reported."""
    front = _front(
        "ollama", system="Be brief.", images=["aGk="], format="json", options={"num_predict": 5},
        think="low", keep_alive="5m", suffix="!", template="{{ .Prompt }}", raw=True,
        context=[1, 2],
    )  # fmt: skip
    request = front.request
    assert [message.role for message in request.messages] == [Role.SYSTEM, Role.USER]
    assert [type(part) for part in request.messages[1].parts] == [Text, Image]
    assert request.sampling.max_tokens == 5
    assert (request.output and request.output.format) == "json"
    assert (request.thinking and request.thinking.effort) == "low"
    assert request.stream is True  # the default is a stream (W101)
    lost = {f"extras.{key}" for key in ("suffix", "template", "raw", "context")}
    for name in dragoman.dialects():
        losses = dragoman.dialect(name).encode_request(request).losses
        assert lost <= {loss.path for loss in losses}, name


@pytest.mark.parametrize(
    "fields", [{"prompt": 5}, {"system": []}, {"images": "x"}, {"images": [1]}]
)
def test_generate_that_cannot_be_read_is_refused(fields: dict[str, Any]) -> None:
    """The error has the status and form of the front's dialect."""
    with pytest.raises(DragomanError) as caught:
        _front("ollama", **fields)
    assert dragoman.Front("ollama").error(caught.value).body.keys() == {"error"}


@pytest.mark.parametrize(("keep", "word"), [({}, "load"), ({"keep_alive": 0}, "unload")])
def test_generate_without_a_prompt_loads_the_model(keep: dict[str, Any], word: str) -> None:
    """Without a prompt, the model is loaded or unloaded, and not asked anything."""
    front = prompt_front("ollama", {"model": "m", **keep})
    assert front.is_load  # type: ignore[attr-defined]  # Ollama's
    body = front.loaded().body  # type: ignore[attr-defined]
    assert (body["done"], body["done_reason"], body["response"]) == (True, word, "")
    _check("ollama", body)
    assert not _front("ollama").is_load  # type: ignore[attr-defined]


def test_other_dialects_have_no_prompts() -> None:
    """Other dialects answer with a 404 in the front's own form."""
    with pytest.raises(InvalidRequest) as caught:
        prompt_front("anthropic", {"prompt": "Hi"})
    assert dragoman.Front("anthropic").error(caught.value).status == 404


# --- answers


@pytest.mark.parametrize("name", NAMES)
def test_unsupported_content_is_reported(name: str) -> None:
    """Calls and thinking have no place in a completion; a refusal is text."""
    call = ToolCall.create("c1", "t", {})
    told = _front(name).response(_said(Thinking("Hm."), Text("Hello"), call))
    _check(name, told.body)
    refused = _front(name).response(_said(Refusal("No."), finish=FinishReason.REFUSAL))
    _check(name, refused.body)
    if name == "ollama":
        assert (told.body["response"], told.body["thinking"]) == ("Hello", "Hm.")
        assert told.body["tool_calls"][0]["function"]["name"] == "t"
        assert refused.body["response"] == "No."
    else:
        assert [choice["text"] for choice in told.body["choices"]] == ["Hello"]
        assert told.body["choices"][0]["finish_reason"] == "stop"
        paths = {loss.path for loss in told.losses}
        assert {"choices[0].message.tool_calls", "choices[0].message.thinking"} <= paths
        assert refused.body["choices"][0]["text"] == "No."
        assert refused.body["choices"][0]["finish_reason"] == "content_filter"


def test_logprobs_have_the_completions_form() -> None:
    """A chat's log probabilities are converted, with their offsets in the text."""
    tokens = [
        {"token": "He", "logprob": -0.5, "bytes": None,
         "top_logprobs": [{"token": "He", "logprob": -0.5}, {"token": "Hi", "logprob": -1}]},
        {"token": "llo", "logprob": -0.25, "bytes": None, "top_logprobs": []},
    ]  # fmt: skip
    message = Message.assistant("Hello").replace(origin=Origin(dialect="openai-chat"))
    told_so: list[Any] = [{"content": tokens}, {"content": "odd"}, ["odd"], {"content": [{}]}]
    for logprobs in told_so:
        response = Response(choices=(Choice(0, message, STOP, None, logprobs),))
        told = _front("openai-chat", logprobs=2).response(response)
        _check("openai-chat", told.body)
        found = told.body["choices"][0]["logprobs"]
        if logprobs == {"content": tokens}:
            assert found["tokens"] == ["He", "llo"]
            assert found["token_logprobs"] == [-0.5, -0.25]
            assert found["text_offset"] == [0, 2]
            assert found["top_logprobs"][0] == {"He": -0.5, "Hi": -1}
        else:
            assert found is None
            assert told.losses


def test_several_prompts_have_one_answer() -> None:
    """Each prompt has its own index, and usage is the sum."""
    front = _front("openai-chat", prompt=["A", "B"], n=2, echo=True)
    each = [
        Response(
            choices=tuple(Choice(n, Message.assistant(f"{word}{n}"), STOP) for n in range(3)),
            usage=Usage(input=1, output=2),
        )
        for word in "ab"
    ]
    told = front.responses(each)
    _check("openai-chat", told.body)
    texts = [(choice["index"], choice["text"]) for choice in told.body["choices"]]
    assert texts == [(0, "Aa0"), (1, "Aa1"), (2, "Bb0"), (3, "Bb1")]
    assert told.body["usage"]["total_tokens"] == 6
    assert [loss.path for loss in told.losses] == [
        "responses[0].choices[2]",
        "responses[1].choices[2]",
    ]
    with pytest.raises(InvalidInputError):
        front.responses(each[:1])


# --- streams


def _events(text: str, *, n: int = 1) -> Iterator[Event]:
    yield ResponseStart()
    for choice in range(n):
        yield PartStart(0, Thinking(""), choice)
        yield PartDelta(0, "Hm.", choice=choice)
        yield PartStop(0, choice=choice)
        yield PartStart(1, Text(""), choice)
        for character in text:
            yield PartDelta(1, character, choice=choice)
        yield PartStop(1, choice=choice)
        yield ChoiceFinish(STOP, choice=choice)
    yield UsageUpdate(Usage(input=1, output=2))
    yield ResponseEnd()


@pytest.mark.parametrize("name", NAMES)
def test_streamed_and_plain_answers_are_equal(name: str) -> None:
    """Every frame is complete, with the same id and time."""
    front = _front(name, stream=True)
    encoder = front.stream()
    frames = _frames(name, b"".join([*map(encoder.feed, _events("Hello")), encoder.close()]))
    for frame in frames:
        _check(name, frame)
    assert _text(name, frames) == "Hello"
    assert len({json.dumps([frame.get("id"), frame.get("created_at")]) for frame in frames}) == 1
    if name == "ollama":
        assert (frames[-1]["done_reason"], frames[-1]["eval_count"]) == ("stop", 2)
        assert "".join(frame.get("thinking", "") for frame in frames) == "Hm."
        assert encoder.losses == []
    else:
        assert [frame["choices"][0]["finish_reason"] for frame in frames][-1] == "stop"
        assert "choices[0].message.thinking" in {loss.path for loss in encoder.losses}
        assert not any("usage" in frame for frame in frames)
        assert len(frames) <= len("Hello") + 2  # none for the thinking


def test_several_prompts_are_streamed_in_parallel() -> None:
    """They may interleave; the stream ends with the last of them."""
    options = {"include_usage": True}
    front = _front("openai-chat", prompt=["A", "B"], n=2, echo=True, stream_options=options)
    encoder = front.stream()
    streams = [list(_events("ab", n=3)), list(_events("cd", n=2))]
    written = [encoder.feed(event, 1) for event in streams[1][:4]]
    written += [encoder.feed(event, 0) for event in streams[0]]
    written += [encoder.feed(event, 1) for event in streams[1][4:]]
    frames = _frames("openai-chat", b"".join([*written, encoder.close()]))
    texts = dict.fromkeys(range(4), "")
    for frame in frames:
        _check("openai-chat", frame)
        for choice in frame["choices"]:
            texts[choice["index"]] += choice["text"]
    assert texts == {0: "Aab", 1: "Aab", 2: "Bcd", 3: "Bcd"}
    assert frames[-1]["usage"]["total_tokens"] == 6
    assert "responses[0].choices[2]" in {loss.path for loss in encoder.losses}


@pytest.mark.parametrize("name", NAMES)
def test_a_failed_stream_ends_in_an_error(name: str) -> None:
    """It has the front's own form; an interrupted stream is not a complete answer."""
    ended = _front(name, stream=True).stream()
    ended.feed(PartStart(0, Text("Hel")))
    assert b'"error"' in ended.close()
    failed = _front(name, stream=True).stream()
    assert b'"error"' in failed.fail(Overloaded("busy"))


@given(scripts())
def test_any_stream_can_be_written(script: Script) -> None:
    """For any events, frames have the vendor's type, or an error is sent."""
    for name in NAMES:
        encoder = _front(name, stream=True, echo=True).stream()
        data = b"".join([*map(encoder.feed, script.events), encoder.close()])
        for line in data.replace(b"data: ", b"").splitlines():
            if line and line != b"[DONE]" and not line.startswith((b"event", b":")):
                frame = json.loads(line)
                assert "error" in frame or frame.keys() & {"choices", "response"}


@pytest.mark.parametrize("streams", [False, True])
def test_a_context_holds_the_conversation(streams: bool) -> None:
    """Clients send the context back to continue; Ollama's own token contexts are reported."""
    front = _front("ollama", system="Be brief.")
    if streams:
        encoder = front.stream()
        told = _frames("ollama", b"".join([*map(encoder.feed, _events("Hello"))]))[-1]
    else:
        told = front.response(_said(Text("Hello"))).body
    context = told["context"]
    again = _front("ollama", prompt="More", context=context).request
    said = [(message.role.value, message.text) for message in again.messages]
    told_so_far = [("user", "Hi"), ("assistant", "Hello"), ("user", "More")]
    assert said == [("system", "Be brief."), *told_so_far]
    assert dragoman.dialect("ollama").encode_request(again).losses == ()
    other = _front("ollama", prompt="More", context=context, system="Be long.").request
    assert [message.text for message in other.messages if message.role is Role.SYSTEM] == [
        "Be long."
    ]
    raw = _front("ollama", raw=True).response(_said(Text("Hello"))).body
    assert "context" not in raw


@given(st.lists(st.integers(-5, 2**25), max_size=9), st.integers(0, 99), st.integers(0, 2**24))
def test_an_altered_context_is_harmless(more: list[int], place: int, number: int) -> None:
    """Any context is either decoded or refused."""
    whole = encode_context([("user", "Hi"), ("assistant", "Hello")])
    whole[place % len(whole)] = number
    for context in (whole, [*whole, *more], whole[: place % len(whole)], [*whole[:2], *more]):
        found = decode_context(context)
        assert found is None or all(len(turn) == 2 for turn in found)
    odds: list[Any] = [None, {}, [], ["a"], [True], [14132746, 1], [14132746, 1, -1], 5]
    for odd in odds:
        assert decode_context(odd) is None


def test_a_forged_context_has_no_millions_of_turns() -> None:
    """Some hundred bytes may hold as many; commas and brackets in the texts are none."""
    assert decode_context(encode_context([("user", "")] * 20_000)) is not None
    assert decode_context(encode_context([("user", "")] * 20_001)) is None
    assert decode_context(encode_context([("user", "[],[" * 100_000)])) is not None
    nested = b"[" * 1_000_000
    packed = zlib.compress(nested)
    packed += bytes(-len(packed) % 3)
    numbers = [int.from_bytes(packed[at : at + 3], "big") for at in range(0, len(packed), 3)]
    assert decode_context([14132746, 1, len(packed), *numbers]) is None


# --- recorded traffic, and hostile input


@pytest.mark.corpus
def test_recorded_prompts(corpus: Corpus) -> None:
    """Ollama's own requests are decoded; its answers, given as a chat's, round-trip."""
    count = 0
    speaker = dragoman.dialect("ollama")
    for recording in corpus.select(
        provider_api="ollama", tier="extended", features=["ollama_generate"]
    ):
        body = recording.request_body
        front = prompt_front("ollama", dumps(body))
        if body.get("prompt"):
            assert front.request.messages[-1].text == body["prompt"]
        stream = recording.response_stream
        if stream is None:
            told = recording.response_body
            response = speaker.decode_response(_as_chat(told))
            made = front.response(response).body
            ours = {} if "context" in told else {"context": made.get("context")}
            assert made in ({**told, **ours}, told)
        else:
            lines = [json.loads(line) for line in stream.splitlines()]
            decoder, encoder = speaker.stream_decoder(), front.stream()
            events = decoder.feed(b"".join(dumps(_as_chat(line)) + b"\n" for line in lines))
            sent = b"".join([*map(encoder.feed, [*events, *decoder.close()]), encoder.close()])
            frames = [json.loads(line) for line in sent.splitlines()]
            assert _text("ollama", frames) == _text("ollama", lines)
            metrics = {
                key: value
                for key, value in lines[-1].items()
                if key.endswith(("duration", "count", "context", "reason"))
            }
            assert frames[-1] | metrics == frames[-1]
        count += 1
    assert count > 10


@pytest.mark.thorough
@pytest.mark.corpus
@pytest.mark.parametrize("home", FRONTS)
def test_recorded_answers_complete_prompts(corpus: Corpus, home: str) -> None:
    """Every frame of any model's answer has the vendor's type, and the text is the same."""
    count = 0
    for recording in picked(corpus, home):
        answer = answered(recording, home)
        if answer is None:
            continue
        count += 1
        for name in NAMES:
            try:
                _check_recorded(name, answer)
            except Exception as error:
                error.add_note(f"{recording.row.file}, as a prompt of {name}")
                raise
    assert count >= 15


def _check_recorded(name: str, answer: Response | list[Event]) -> None:
    front = _front(name, stream=True)
    if isinstance(answer, Response):
        try:
            body = front.response(answer).body
        except DragomanError:
            return
        _check(name, body)
        choices = body["choices"] if name == "openai-chat" else ()
        assert all(choice["finish_reason"] for choice in choices)
        return
    encoder = front.stream()
    data = b"".join([*map(encoder.feed, answer), encoder.close()])
    if b'"error"' not in data:
        for frame in _frames(name, data):
            _check(name, frame)


def _as_chat(told: dict[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in told.items() if key != "response"}
    return {**rest, "message": {"role": "assistant", "content": told["response"]}}


FIELDS = st.sampled_from([
    "model", "prompt", "suffix", "system", "images", "echo", "n", "best_of", "logprobs", "context",
    "raw", "template", "options", "format", "stream", "stream_options", "stop", "max_tokens",
    "messages", "tools", "think", "keep_alive",
])  # fmt: skip


@given(st.dictionaries(FIELDS, json_values, max_size=6) | json_values, st.sampled_from(NAMES))
def test_whatever_is_sent_is_read_or_refused(body: Any, name: str) -> None:
    """Only our own errors are raised; a decoded request can be answered, plain and streamed."""
    try:
        front = prompt_front(name, dumps(body))
    except DragomanError:
        return
    answers = [_said(Text("Hello"))] * len(front.requests)
    assert front.responses(answers).to_bytes()
    encoder = front.stream()
    for number in range(len(front.requests)):
        for event in _events("ab"):
            encoder.feed(event, number)
    assert encoder.close() == b""
    assert front.error(Overloaded("busy")).to_bytes()
