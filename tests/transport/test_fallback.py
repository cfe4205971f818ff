"""Fallback among several models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from dragoman.agent.agent import Agent
from dragoman.agent.events import RetryRequested, TextDelta
from dragoman.errors import (
    AllFailed,
    AuthenticationError,
    ConfigError,
    ConnectError,
    ContextTooLong,
    DragomanError,
    InvalidInputError,
    InvalidRequest,
    LossError,
    ModelNotFound,
    NotRecorded,
    OrderError,
    Overloaded,
    PermissionDenied,
    ProviderError,
    QuotaExceeded,
    RateLimited,
    Refused,
    ServerError,
    StreamInterrupted,
    TimeoutError,  # noqa: A004 - ours
    ToolError,
    WireError,
)
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.events import ResponseStart, StreamError
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.transport.client import Client
from dragoman.transport.fallback import FallbackModel, another_may_answer
from dragoman.transport.model import Model
from dragoman.transport.retries import Retries
from dragoman.transport.scripted import ScriptedModel
from dragoman.wire.dialect import dialect, dialects
from tests.transport.vendors import Came, Goes, Vendor, failed, said, serving, streamed

ONCE = Retries(attempts=1)


def client(vendor: Vendor, model: str = "openai:m", retries: Retries = ONCE) -> Client:
    """A client of a provider on loopback."""
    path = "" if model.startswith("anthropic") else "/v1"
    return Client(model, base_url=f"{vendor.url}{path}", key="sk-secret", retries=retries)


class Vendors:
    """Several providers, and a fallback model over all of them."""

    def __init__(self, *answers: Callable[[Came], Goes], **options: Any) -> None:
        self._answers, self._options = answers, options
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> tuple[FallbackModel, list[Vendor]]:
        enter = self._stack.enter_async_context
        vendors = [await enter(serving(answer)) for answer in self._answers]
        clients = [
            await enter(client(vendor, f"openai:m{number}"))
            for number, vendor in enumerate(vendors)
        ]
        return FallbackModel(*clients, **self._options), vendors

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()


def always(goes: Goes) -> Callable[[Came], Goes]:
    """A provider that always gives the same reply."""
    return lambda _came: goes


async def test_the_first_model_that_answers_is_used() -> None:
    """Models are tried in order; those after it are not called."""
    busy, fine = always(failed(529, "overloaded_error")), always(said("Yes"))
    async with Vendors(busy, fine, fine) as (model, vendors):
        assert (await model.send("Well?")).text == "Yes"
        assert [len(vendor.came) for vendor in vendors] == [1, 1, 0]


async def test_each_request_starts_with_the_first_model() -> None:
    """Even if it failed before."""
    moods = iter([failed(500), said("back")])
    async with Vendors(lambda _: next(moods), always(said("other"))) as (model, _):
        assert [(await model.send("Hi")).text for _ in range(2)] == ["other", "back"]


async def test_each_model_gets_the_request_in_its_dialect() -> None:
    """The request is encoded again, with the model's own name and no repeated message."""

    def claude(_came: Came) -> Goes:
        return Goes({"id": "x", "type": "message", "role": "assistant", "model": "c",
                     "content": [{"type": "text", "text": "Salut"}], "stop_reason": "end_turn",
                     "usage": {"input_tokens": 1, "output_tokens": 1}})  # fmt: skip

    request = Request(model="mine", messages=(Message.system("Be brief"), Message.user("Hi")))
    async with (
        serving(always(failed(429))) as one,
        serving(claude) as other,
        client(one) as first,
        client(other, "anthropic:c") as second,
    ):
        response = await FallbackModel(first, second).send(request)
    assert response.text == "Salut"
    assert (one.came[0].json["model"], other.came[0].json["model"]) == ("m", "c")
    assert one.came[0].json["messages"][-1] == {"role": "user", "content": "Hi"}
    asked = other.came[0].json
    assert [message["role"] for message in asked["messages"]] == ["user"]
    assert (
        asked["system"] == [{"type": "text", "text": "Be brief"}] or asked["system"] == "Be brief"
    )


async def test_a_model_without_a_name_uses_the_requests() -> None:
    """`Client("openai")` takes the model of the request."""
    async with serving(always(said())) as vendor, client(vendor, "openai") as any_model:
        await FallbackModel(any_model).send(Request(model="big", messages=(Message.user("Hi"),)))
    assert vendor.came[0].json["model"] == "big"


async def test_a_generator_of_messages_reaches_every_model() -> None:
    """It isn't exhausted when the second model is tried."""

    def messages() -> Iterator[Message]:
        yield Message.user("One")
        yield Message.user("Two")

    async with Vendors(always(failed(503)), always(said())) as (model, vendors):
        await model.send(messages())
    assert vendors[0].came[0].json["messages"] == vendors[1].came[0].json["messages"]
    assert len(vendors[1].came[0].json["messages"]) == 2


async def test_if_all_fail_all_causes_are_included() -> None:
    """In the order of the models, without quoting them."""
    answers = [failed(429, "rate_limit_exceeded", **{"Retry-After": "7"}), failed(401), failed(500)]
    async with Vendors(*map(always, answers)) as (model, _):
        with pytest.raises(AllFailed) as caught:
            await model.send("Hi")
    kinds = [type(cause) for cause in caught.value.causes]
    assert kinds == [RateLimited, AuthenticationError, ServerError]
    first, *lines = str(caught.value).splitlines()
    assert first == "all 3 models failed"
    assert [line.split(":")[0].strip() for line in lines] == [kind.__name__ for kind in kinds]
    assert all(f"openai:m{place} at 127.0.0.1" in line for place, line in enumerate(lines))
    assert "secret" not in f"{caught.value!r}{caught.value}{caught.value.__context__!r}"
    assert caught.value.retry_after == 7


async def test_an_unreachable_server_is_skipped() -> None:
    """The next model answers."""
    async with (
        serving(always(said("here"))) as vendor,
        client(vendor) as alive,
        client(Vendor("http://127.0.0.1:9")) as dead,
    ):
        assert (await FallbackModel(dead, alive).send("Hi")).text == "here"


@pytest.mark.parametrize(
    ("error", "goes_on"),
    [
        (ConnectError("x"), True),
        (TimeoutError("x"), True),
        (StreamInterrupted("x"), True),
        (WireError("x"), True),
        (ConfigError("no key"), True),
        (AuthenticationError("x"), True),
        (PermissionDenied("x"), True),
        (RateLimited("x"), True),
        (QuotaExceeded("x"), True),
        (Overloaded("x"), True),
        (ServerError("x"), True),
        (ContextTooLong("x"), True),
        (ModelNotFound("x"), True),
        (InvalidRequest("x", status=404), True),
        (InvalidRequest("x", status=409, retryable=True), True),
        (InvalidRequest("x", status=400), False),
        (Refused("x"), False),
        (InvalidInputError("x"), False),
        (LossError("x"), False),
        (OrderError("x"), False),
        (ToolError("x"), False),
        (NotRecorded("x"), False),
    ],
)
def test_errors_that_another_model_may_not_have(error: DragomanError, goes_on: bool) -> None:
    """The caller's mistakes are the same for all models; a tool error is no model's."""
    assert another_may_answer(error) is goes_on


async def test_the_callers_mistakes_are_raised_at_once() -> None:
    """Unchanged, and without trying another model."""
    async with Vendors(always(failed(400, "invalid_request_error")), always(said())) as made:
        model, vendors = made
        with pytest.raises(InvalidRequest):
            await model.send("Hi")
        with pytest.raises(InvalidInputError):
            await model.send([{"role": "nobody", "content": "x"}])
    assert [len(vendor.came) for vendor in vendors] == [1, 0]


async def test_when_decides_whether_to_continue() -> None:
    """It overrides the default."""
    async with Vendors(
        always(failed(400)), always(said("ok")), when=lambda error: isinstance(error, ProviderError)
    ) as (model, _):
        assert (await model.send("Hi")).text == "ok"


async def test_models_given_by_name_are_not_retried_by_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request that may have been processed is not repeated."""
    once, more = FallbackModel("openai:a"), FallbackModel("openai:a", retries=Retries(attempts=4))
    for model, attempts in ((once, 1), (more, 4)):
        (only,) = model.models
        assert isinstance(only, Client)
        assert only._retries.attempts == attempts
        await model.close()
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with FallbackModel("openai:a", "anthropic:b") as model:
        with pytest.raises(AllFailed) as caught:  # the keys are looked up when they are used
            await model.send("Hi")
    assert [type(cause) for cause in caught.value.causes] == [ConfigError, ConfigError]


async def test_only_models_it_opened_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that were passed in stay open."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    async with serving(always(said())) as vendor, client(vendor) as mine:
        async with FallbackModel(mine, "openai:b") as model:
            assert isinstance(model, Model)
        assert (await mine.send("still?")).text == "Hello"
        made = model.models[1]
        with pytest.raises(InvalidInputError, match="closed"):
            await made.send("Hi")


def test_at_least_one_valid_model_is_needed() -> None:
    """An empty list and unknown models are errors; the repr has the names."""
    with pytest.raises(InvalidInputError):
        FallbackModel()
    with pytest.raises(ConfigError):
        FallbackModel("nobody:x")
    assert repr(FallbackModel("openai:a", "echo:")) == "FallbackModel(openai:a, echo:)"
    assert FallbackModel("openai:a", "groq:b").name == "openai:a|groq:b"


async def test_fallbacks_can_be_nested() -> None:
    """The causes are nested as well."""
    async with Vendors(always(failed(500)), always(failed(503))) as (inner, _):
        with pytest.raises(AllFailed) as caught:
            await FallbackModel(inner, when=lambda _error: True).send("Hi")
    (cause,) = caught.value.causes
    assert isinstance(cause, AllFailed)
    assert len(cause.causes) == 2


# --- streams


async def test_streams_fall_back_before_their_first_event() -> None:
    """The reader doesn't notice."""
    async with Vendors(always(failed(503)), always(streamed("Hel", "lo"))) as (model, vendors):
        async with model.stream("Hi") as stream:
            events = [event async for event in stream]
            assert stream.name == "openai:m1"
        assert events
        assert stream.is_complete
        assert stream.response.text == "Hello"
    assert [len(vendor.came) for vendor in vendors] == [1, 1]


async def test_has_started_is_true_once_a_model_was_called() -> None:
    """No model is called before the first event is read."""
    async with Vendors(always(streamed("Hel", "lo"))) as (model, _):
        stream = model.stream("Hi")
        assert not stream.has_started
        await stream.collect()
        assert stream.has_started


async def test_an_interrupted_stream_is_raised() -> None:
    """Events already read can't be taken back; the error has the partial response."""
    broken = always(streamed("Hel", "lo", is_cut=True))
    async with Vendors(broken, always(streamed("Bye"))) as (model, vendors):
        stream = model.stream("Hi")
        with pytest.raises(StreamInterrupted) as caught:
            await stream.collect()
    assert caught.value.partial.text == "Hello"
    assert len(vendors[1].came) == 0


async def test_an_interrupted_stream_is_restarted_on_request() -> None:
    """With `interrupted`, the next model starts from the beginning."""
    broken = always(streamed("Hel", is_cut=True))
    async with Vendors(broken, always(streamed("Bye")), interrupted=True) as (model, _):
        assert (await model.stream("Hi").collect()).text == "Bye"


@pytest.mark.parametrize("front", dialects())
async def test_a_partial_and_a_complete_answer_are_never_joined(front: str) -> None:
    """Accumulated events have the complete answer only; a gateway's client gets an error."""
    broken = always(streamed("Hel", is_cut=True))
    async with Vendors(broken, always(streamed("Bye")), interrupted=True) as (model, _):
        events = [event async for event in model.stream("Hi")]
    accumulator = MessageAccumulator()
    accumulator.extend(events)
    assert accumulator.message.text == "Bye"
    assert sum(isinstance(event, ResponseStart) and event.restarts for event in events) == 1
    encoder, decoder = dialect(front).stream_encoder(), dialect(front).stream_decoder()
    sent = b"".join(map(encoder.feed, events)) + encoder.close()
    told = [*decoder.feed(sent), *decoder.close()]
    assert "Bye" not in decoder.response.text
    assert any(isinstance(event, StreamError) for event in told)
    assert not decoder.is_complete


async def test_an_agent_keeps_only_the_complete_answer() -> None:
    """Its result and messages have nothing of the partial one; its events announce the restart."""
    broken = always(streamed("Hel", is_cut=True))
    async with (
        Vendors(broken, always(streamed("Bye")), interrupted=True) as (model, _),
        Agent(model).stream("Hi") as stream,
    ):
        seen = [event async for event in stream.events()]
    assert stream.result.text == "Bye"
    assert stream.result.messages[-1].text == "Bye"
    told = [event for event in seen if isinstance(event, (TextDelta, RetryRequested))]
    assert [type(event) for event in told] == [TextDelta, RetryRequested, TextDelta]


async def test_a_stream_that_no_model_starts_has_all_causes() -> None:
    """As for a plain request."""
    async with Vendors(always(failed(503)), always(failed(401))) as (model, _):
        stream = model.stream("Hi")
        with pytest.raises(AllFailed) as caught:
            await stream.collect()
        assert [type(cause) for cause in caught.value.causes] == [Overloaded, AuthenticationError]
        assert stream.response.choices == ()


async def test_a_stream_is_iterated_once() -> None:
    """A second iteration is an error."""
    async with Vendors(always(streamed("Hi"))) as (model, _):
        stream = model.stream("Hi")
        await stream.collect()
        with pytest.raises(InvalidInputError):
            await stream.collect()
        await stream.close()


async def test_cancelling_a_stream_stops_everything() -> None:
    """No other model is called, and no more is read."""
    never = asyncio.Event()
    endless = always(streamed("Hel", "lo", until=never))
    async with Vendors(endless, always(streamed("x"))) as (model, vendors):
        begun = asyncio.Event()

        async def read() -> None:
            async with model.stream("Hi") as stream:
                async for _ in stream:
                    begun.set()

        task = asyncio.create_task(read())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        never.set()
        assert len(vendors[1].came) == 0


async def test_closing_a_stream_early_leaves_nothing_open() -> None:
    """There are no more events."""
    async with Vendors(always(streamed("a", "b", "c"))) as (model, _):
        stream = model.stream("Hi")
        async for _ in stream:
            break
        await stream.close()
        with pytest.raises(StopAsyncIteration):
            await anext(stream)


async def test_the_conversation_is_not_changed() -> None:
    """Messages that were passed in stay the same, whichever model answered."""
    messages = [Message.user("Hi")]
    async with Vendors(always(failed(500)), always(said())) as (model, _):
        await model.send(messages)
    assert [message.role for message in messages] == [Role.USER]


# --- blocking API


def test_the_blocking_api_works_too() -> None:
    """Plain and streamed, from a thread without a loop; the errors are the same."""
    with FallbackModel("openai:a", ScriptedModel(["One", "Two", "Three"])) as model:
        assert model.send_sync("Hi").text == "One"  # OpenAI has no key here
        with model.stream_sync("Hi") as stream:
            assert list(stream)
        assert (stream.is_complete, stream.response.text) == (True, "Two")
        assert model.stream_sync("Hi").collect().text == "Three"
    with FallbackModel("openai:a") as model, pytest.raises(AllFailed):
        model.send_sync("Hi")
