"""Middleware between clients and models: what it sees and changes, on every front."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web

from dragoman.errors import PermissionDenied, Refused
from dragoman.events import PartDelta
from dragoman.gateway.exchange import Exchange
from dragoman.gateway.middleware import Info
from dragoman.model.messages import Message
from dragoman.model.parts import Text, Thinking
from dragoman.model.requests import Request
from dragoman.model.responses import Choice, Response
from dragoman.model.usage import FinishReason
from tests.gateway.answers import SAID, Provider, frames_of, said
from tests.gateway.client_requests import FRONTS, ask, path_for, text_in
from tests.gateway.middleware.conftest import Stage

BACKS = ("openai-chat", "openai-responses", "anthropic", "gemini", "ollama")
both_ways = pytest.mark.parametrize("stream", [False, True])
each_front = pytest.mark.parametrize("front", FRONTS)


class Loud:
    """Changes requests and answers."""

    async def before(self, request: Request, _info: Info) -> Request:
        """Change the question."""
        last = request.messages[-1]
        return request.replace(
            messages=(*request.messages[:-1], last.replace(parts=(Text("How far?"),)))
        )

    def on_event(self, event: Any, _info: Info) -> Any:
        """Change the text to upper case."""
        if isinstance(event, PartDelta) and event.text:
            return event.replace(text=event.text.upper())
        return event


@both_ways
@each_front
def test_requests_and_answers_are_changed_on_every_front(
    stage: Stage, front: str, stream: bool
) -> None:
    """The model gets the changed request, and the client the changed answer."""
    stage.use(Loud)
    for back in BACKS:
        assert stage.text(front, "Where?", stream=stream, model=back) == SAID.upper()
        asked = json.dumps(stage.providers[back].asked[-1])
        assert "How far?" in asked
        assert "Where?" not in asked
        assert stage.records[-1].passes is False
        usage = stage.records[-1].usage
        assert usage is not None
        assert (usage.total_input, usage.total_output) == (11, 7)


@both_ways
@each_front
def test_an_in_process_model_has_the_same(stage: Stage, front: str, stream: bool) -> None:
    """The echo of a changed request is changed once more in the answer."""
    stage.use(Loud)
    assert stage.text(front, stream=stream, model="here") == "HOW FAR?"


@both_ways
@each_front
def test_unchanged_requests_are_passed_through(stage: Stage, front: str, stream: bool) -> None:
    """Middleware that only reads requests leaves the bytes unchanged in both directions."""

    async def look(request: Request, info: Info) -> None:
        seen.append((request.messages[-1].text, info.front, info.stream, info.route, info.model))

    seen: list[Any] = []
    stage.use(look)
    assert stage.text(front, stream=stream, model=front) == SAID
    assert seen == [("Where?", front, stream, front, front)]
    assert stage.records[-1].passes


def said_now(text: str) -> Response:
    """An answer of the middleware itself."""
    return Response(choices=(Choice(0, Message.assistant(text), FinishReason.STOP),))


@both_ways
@each_front
def test_middleware_may_answer_itself(stage: Stage, front: str, stream: bool) -> None:
    """A Response of `before` is the answer; no model is called and nothing is charged."""

    async def before(_request: Request, _info: Info) -> Response:
        return said_now("Not here.")

    stage.use(before)
    assert stage.text(front, stream=stream) == "Not here."
    assert stage.providers["anthropic"].asked == []
    record = stage.records[-1]
    assert record.usage is not None
    assert record.usage.total_input == 0
    assert (record.cost, record.attempts) == (None, 0)


@both_ways
@each_front
def test_its_own_errors_are_in_the_fronts_form(stage: Stage, front: str, stream: bool) -> None:
    """A DragomanError keeps its status, before anything was sent."""

    async def before(_request: Request, _info: Info) -> None:
        msg = "that is not talked about"
        raise PermissionDenied(msg, status=403)

    stage.use(before)
    answer = stage.ask(front, stream=stream)
    assert answer.status == 403
    assert b"not talked about" in answer.body
    assert "error" in answer.json
    assert stage.records[-1].error == "PermissionDenied"


class Raising:
    """Raises an exception in one of its functions."""

    def __init__(self, hook: str, error: BaseException) -> None:
        self.error = error
        setattr(self, hook, self.hook)

    def hook(self, *_given: Any) -> Any:
        """Raise it."""
        raise self.error


@pytest.mark.parametrize("hook", ["route", "before", "on_event", "after"])
@pytest.mark.parametrize(
    "error",
    [ValueError("sekrit"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(),
     GeneratorExit(), StopIteration(), RecursionError()],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_after_any_exception_the_next_request_is_served(
    stage: Stage, hook: str, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """A failing middleware is a 500 in the front's form, logged without its text."""
    for front in ("openai-chat", "gemini"):
        for stream in (False, True):
            stage.use(Raising(hook, error))
            answer = stage.ask(front, stream=stream, model="both")
            assert answer.status == 500 or (stream and b"error" in answer.body)
            assert b"sekrit" not in answer.body
            if answer.status == 200:
                with pytest.raises(AssertionError):
                    text_in(front, answer, stream=True)
    assert len(stage.providers["anthropic"].asked) == (4 if hook in {"on_event", "after"} else 0)
    assert stage.providers["openai-chat"].asked == []  # no fallback: the provider is not to blame
    assert "sekrit" not in caplog.text
    assert f"failed in {hook}" in caplog.text
    stage.use()
    assert stage.text("openai-chat") == SAID


@pytest.mark.parametrize("hook", ["route", "before", "on_event", "after"])
@pytest.mark.parametrize("nonsense", [7, "text", b"x", object(), [1], {"a": 1}, True, Message])
def test_invalid_return_values_are_rejected(stage: Stage, hook: str, nonsense: Any) -> None:
    """They are a 500, never an answer."""
    if hook == "route" and isinstance(nonsense, str):
        pytest.skip("a name is no nonsense")

    class Odd:
        pass

    setattr(Odd, hook, lambda *_given: nonsense)
    stage.use(Odd)
    assert stage.ask("anthropic").status == 500
    answer = stage.ask("anthropic", stream=True)
    assert answer.status == 500 or b"event: error" in answer.body


@both_ways
def test_an_error_after_an_answer_is_not_a_complete_answer(stage: Stage, stream: bool) -> None:
    """If `after` rejects an answer, a stream has no end."""

    class Strict:
        async def after(self, _request: Request, response: Response, _info: Info) -> None:
            seen.append(response.text)
            msg = "not like that"
            raise Refused(msg, status=400)

    seen: list[str] = []
    stage.use(Strict)
    for front in FRONTS:
        answer = stage.ask(front, stream=stream)
        assert b"not like that" in answer.body
        if stream:
            with pytest.raises(AssertionError):
                text_in(front, answer, stream=True)
        else:
            assert answer.status == 400
    assert seen == [SAID] * len(FRONTS)
    usage = stage.records[-1].usage
    assert usage is not None
    assert usage.total_output == 7  # it was charged


@pytest.mark.parametrize("hook", ["before", "after"])
def test_a_hanging_middleware_times_out(stage: Stage, hook: str) -> None:
    """Even one that can't be cancelled."""
    release = threading.Event()

    class Hanging:
        pass

    async def hang(*_given: Any) -> None:
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)

    setattr(Hanging, hook, staticmethod(hang))
    stage.use(Hanging, timeout=0.1)
    try:
        assert stage.ask("anthropic").status == 500
    finally:
        release.set()
    stage.use()
    assert stage.text("anthropic") == SAID


def test_custom_routing_names_the_model(stage: Stage) -> None:
    """`route` returns the name to route by; the first one counts."""

    class Sized:
        def route(self, request: Request, _info: Info) -> str | None:
            return "gemini" if len(request.messages[-1].text) > 10 else None

    class Else:
        def route(self, _request: Request, _info: Info) -> str:
            return "ollama"

    stage.use(Sized, Else)
    assert stage.text("openai-chat", "A long question", model="anthropic") == SAID
    assert stage.text("openai-chat", "Short", model="anthropic") == SAID
    assert [len(stage.providers[name].asked) for name in ("gemini", "ollama", "anthropic")] == [
        1, 1, 0,
    ]  # fmt: skip
    assert [record.route for record in stage.records] == ["gemini", "ollama"]


def test_a_changed_model_is_another_route(stage: Stage) -> None:
    """`before` may change `model` as well; an unknown one is a 404."""

    async def before(request: Request, _info: Info) -> Request:
        return request.replace(model=name)

    name = "gemini"
    stage.use(before)
    assert stage.text("openai-chat", model="anthropic") == SAID
    assert len(stage.providers["gemini"].asked) == 1
    name = "nowhere"
    assert stage.ask("openai-chat", model="anthropic").status == 404


def test_answers_pass_in_reverse_order(stage: Stage) -> None:
    """The first of the list sees the request first and the answer last."""

    class Mark:
        def __init__(self, mark: str) -> None:
            self.mark = mark

        async def before(self, request: Request, _info: Info) -> Request:
            part = Text(f"{request.messages[-1].text}{self.mark}")
            return request.replace(messages=(request.messages[-1].replace(parts=(part,)),))

        def on_event(self, event: Any, _info: Info) -> Any:
            if isinstance(event, PartDelta) and event.text:
                return [event, event.replace(text=f"<{self.mark}")]
            return event

    stage.use(Mark("1"), Mark("2"))
    assert stage.text("openai-chat", "?", model="here") == "?12<1<2<1"


def test_state_is_of_one_middleware_and_one_exchange(stage: Stage) -> None:
    """Neither another middleware nor the next request sees it."""

    class Counting:
        async def before(self, _request: Request, info: Info) -> None:
            assert info.state == {}
            info.state["count"] = 1

        async def after(self, _request: Request, _response: Response, info: Info) -> None:
            seen.append(info.state["count"])

    seen: list[int] = []
    stage.use(Counting, Counting())
    stage.text("anthropic")
    stage.text("anthropic", stream=True)
    assert seen == [1, 1, 1, 1]


def test_headers_that_may_hold_a_secret_are_hidden(stage: Stage) -> None:
    """Keys, cookies and tokens stay with the gateway."""

    async def before(_request: Request, info: Info) -> None:
        seen.update(info.headers)

    seen: dict[str, str] = {}
    stage.use(before)
    stage.ask(
        "anthropic", x_api_key="k", authorization="Bearer s", cookie="c=1", x_tenant="acme",
        proxy_authorization="b", x_goog_api_key="g", x_auth_token="t", api_key="a",
    )  # fmt: skip
    assert seen["x-tenant"] == "acme"
    assert not {"k", "Bearer s", "c=1", "b", "g", "t", "a"} & set(seen.values())


def test_arguments_can_not_be_changed_in_place(stage: Stage) -> None:
    """Requests, answers and headers are immutable: a change raises an error."""

    async def before(request: Any, info: Any) -> None:
        for change in (
            lambda: setattr(request, "messages", ()),
            lambda: request.extras.update(a=1),
            lambda: request.messages[0].parts.append(1),
            lambda: info.headers.__setitem__("a", "b"),
        ):
            try:
                change()
            except (AttributeError, TypeError):
                refused.append(1)

    refused: list[int] = []
    stage.use(before)
    assert stage.text("anthropic") == SAID
    assert len(refused) == 4


def test_texts_arrive_in_deltas_only(stage: Stage) -> None:
    """If a provider repeats a complete text, text that middleware removed does not reappear."""

    class Silent:
        def on_event(self, event: Any, _info: Info) -> Any:
            return None if isinstance(event, PartDelta) and event.text else event

    thought = Thinking("hidden thought")
    for back in BACKS:
        stage.providers[back].answers = [said(thought, Text(SAID))]
    stage.use(Silent)
    for back in BACKS:
        for front in FRONTS:
            for stream in (False, True):
                answer = stage.ask(front, model=back, stream=stream)
                assert answer.status == 200
                assert b"Bridge" not in answer.body, (front, back, stream)
                assert b"hidden" not in answer.body, (front, back, stream)


def test_a_stream_that_middleware_saw_is_not_restarted(stage: Stage) -> None:
    """Text held back from one provider is not mixed with another's."""

    class Cut(Provider):
        async def __call__(self, request: web.Request) -> web.StreamResponse:
            self.asked.append(json.loads(await request.read()))
            reply = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await reply.prepare(request)
            await reply.write(b"".join(frames_of("anthropic", said())[:2]))
            assert request.transport is not None
            request.transport.close()
            return reply

    class Holding:
        def on_event(self, _event: Any, _info: Info) -> Any:
            return None

    stage.providers["anthropic"].__class__ = Cut
    stage.use(Holding)
    answer = stage.ask("openai-chat", stream=True, model="both")
    assert answer.status >= 500
    assert stage.providers["openai-chat"].asked == []


def test_a_client_that_disconnects_cancels_its_middleware(stage: Stage) -> None:
    """A waiting hook is cancelled with the request."""
    import socket

    left = threading.Event()
    begun = threading.Event()

    async def before(_request: Request, _info: Info) -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            left.set()

    stage.use(before)
    stage.asked += 1
    host, port = stage.serving.url.removeprefix("http://").split(":")
    raw = b'{"model": "anthropic", "messages": [{"role": "user", "content": "?"}]}'
    with socket.create_connection((host, int(port))) as connection:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\n"
        connection.sendall(f"{head}content-length: {len(raw)}\r\n\r\n".encode() + raw)
        assert begun.wait(10)
    assert left.wait(10)
    assert sys.exc_info() == (None, None, None)


@both_ways
def test_stored_answers_are_those_the_client_saw(
    stage: Stage, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changed answers, and those of middleware itself; stored before the client sees the end."""

    class Recorder:
        async def keep(self, response: Response, /, request: Request | None = None) -> None:  # noqa: ARG002 - part of the protocol
            kept.append(response.text)

    kept: list[str] = []

    class Recorded(Exchange):
        def __init__(self, *given: Any, **options: Any) -> None:
            super().__init__(*given, **options, recorder=Recorder())

    for module in ("chat", "responses.creating"):
        monkeypatch.setattr(f"dragoman.gateway.{module}.Exchange", Recorded)
    for front in FRONTS:
        stage.use(Loud)
        for back in ("anthropic", front, "here"):
            text = stage.text(front, stream=stream, model=back)  # stored by now
            kept.append(f"< {text}")
        stage.use(lambda _request, _info: said_now("Not here."))
        kept.append(f"< {stage.text(front, stream=stream, model='cached-anthropic')}")
    assert len(kept) == 40
    assert [f"< {each}" for each in kept[::2]] == kept[1::2]


def test_an_interrupted_stream_is_not_ended_by_middleware(stage: Stage) -> None:
    """Text that was held back when the connection broke is not sent as an end."""

    class Cut(Provider):
        async def __call__(self, request: web.Request) -> web.StreamResponse:
            await request.read()
            reply = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await reply.prepare(request)
            await reply.write(b"".join(frames_of("anthropic", said())[:2]))
            await reply.write_eof()
            return reply

    stage.providers["anthropic"].__class__ = Cut
    stage.use(Loud)
    for front in FRONTS:
        answer = stage.ask(front, stream=True)
        with pytest.raises(AssertionError):
            text_in(front, answer, stream=True)
        assert b"error" in answer.body or b"failed" in answer.body


@both_ways
def test_legacy_prompts_pass_through_middleware(stage: Stage, stream: bool) -> None:
    """They are chats to it; several in one request are rejected."""
    stage.use(Loud)
    url, model = stage.serving.url, "here"
    body = {"model": model, "prompt": "Where?", "stream": stream}
    stage.asked += 4
    completion = ask(url, "/v1/completions", body)
    generated = ask(url, "/api/generate", body)
    for answer in (completion, generated):
        assert answer.status == 200
        assert b"Where" not in answer.body
        assert b"HOW" in answer.body
    several = ask(url, "/v1/completions", {**body, "prompt": ["Where?", "When?"]})
    assert several.status == 400
    assert b"one by one" in several.body
    loaded = ask(url, "/api/generate", {"model": model, "stream": False})
    assert loaded.status == 200


def test_no_spelling_of_a_messages_field_passes_middleware(stage: Stage) -> None:
    """A redaction that reads the messages has seen all that a provider could take for theirs."""

    async def before(request: Request, _info: Info) -> None:
        assert "hidden" not in str([message.text for message in request.messages])

    stage.use(before)
    contents: dict[str, Any] = {
        "ollama": {"messages": [{"role": "user", "content": "a", "Content": "hidden"}]},
        "openai-chat": {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "a", "Text": "hidden"}]},
                {"role": "user", "content": "a", "\uff43ontent": "hidden", "harmless": 1},
            ]
        },
        "anthropic": {
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "a", "CONTENT": "hidden"}],
        },
    }
    for front, body in contents.items():
        stage.asked += 1
        asked = {"model": front, "stream": False, **body}
        answer = ask(stage.serving.url, path_for(front), asked)
        assert answer.status == 200, answer.body
        sent = json.dumps(stage.providers[front].asked[-1])
        assert "hidden" not in sent, sent
        assert ("harmless" in sent) is (front == "openai-chat")
        assert "x-dragoman-losses" in answer.headers
