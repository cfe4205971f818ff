"""OpenAI's Responses: linking requests to the previous answer, and when not to."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from dragoman.agent.response_chaining import Links
from dragoman.errors import InvalidInputError, InvalidRequest, ProviderError, ServerError
from dragoman.model.messages import Message
from dragoman.model.parts import Origin, Text
from dragoman.model.requests import Request, State
from dragoman.model.responses import Choice, Response
from dragoman.model.tools import ToolDefinition, ToolResult
from dragoman.model.usage import FinishReason, Usage
from dragoman.providers.registry import provider, provider_names
from dragoman.transport.client import Client
from dragoman.transport.retries import Retries
from dragoman.wire.openai_responses.codec import DIALECT
from dragoman.wire.target import Target
from tests.transport.servers import plain, serving
from tests.wire.openai_responses.test_sdk_types import _check_request

MODEL = "gpt-5"
TARGET = provider("openai").target(MODEL, DIALECT.name)
ASKED = Message.user("What is it like in Basel and Bern?")
RESULTS = Message.tool(ToolResult("call_1", "rain"), ToolResult("call_2", "sun"))
TOOL = ToolDefinition("weather", "The weather.", {"type": "object", "properties": {}})
FIRST: dict[str, Any] = {
    "id": "resp_1",
    "model": "gpt-5-2025-08-07",
    "status": "completed",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather",
         "arguments": '{"city":"Basel"}', "status": "completed"},
        {"type": "custom_tool_call", "id": "ctc_2", "call_id": "call_2", "name": "look",
         "input": "Bern", "status": "completed"},
    ],
}  # fmt: skip


def answer(wire: dict[str, Any] = FIRST, place: str = "openai") -> Response:
    """An answer as a client returns it, with its provider."""
    response = DIALECT.decode_response(wire)
    message = response.message
    assert message.origin is not None
    made = message.replace(origin=message.origin.replace(provider=place))
    return response.replace(choices=(response.choices[0].replace(message=made),))


def whole(*newer: Message, first: Message | None = None, **fields: Any) -> Request:
    """A request with the whole conversation."""
    said = (ASKED, first or answer().message, *(newer or (RESULTS,)))
    return Request(messages=said, system=(Text("Be brief."),), tools=(TOOL,), **fields)


def remembering(**fields: Any) -> Links:
    """Links that know the first answer."""
    links = Links()
    links.remember(Request(messages=(ASKED,), **fields), answer())
    return links


def test_only_new_messages_are_sent() -> None:
    """The results are sent with the answer's id; instructions, tools and settings stay (W36)."""
    request = whole()
    short = remembering().linked(request, TARGET)
    assert short.state == State(previous_response_id="resp_1")
    assert short == request.replace(messages=short.messages, state=short.state)
    encoded = DIALECT.encode_request(short, TARGET)
    assert encoded.losses == ()
    assert [v for v in DIALECT.check(encoded.body) if v.path != "model"] == []
    _check_request(encoded.body)
    assert encoded.body["input"] == [
        {"type": "function_call_output", "call_id": "call_1", "output": "rain"},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "sun"},
    ]
    assert encoded.body["previous_response_id"] == "resp_1"
    assert encoded.body["instructions"] == "Be brief."
    assert [tool["name"] for tool in encoded.body["tools"]] == ["weather"]


def test_messages_after_the_results_are_sent() -> None:
    """Everything since the answer is sent in order, and nothing before it."""
    more = Message.user("And in Chur?")
    short = remembering().linked(whole(RESULTS, more), TARGET)
    body = DIALECT.encode_request(short, TARGET).body
    assert [item.get("type", "message") for item in body["input"]] == [
        "function_call_output", "custom_tool_call_output", "message"
    ]  # fmt: skip
    _check_request(body)


def test_each_answer_is_the_next_link() -> None:
    """Whether its own request was sent in full or shortened."""
    links = remembering()
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "Rain.", "annotations": []}]}  # fmt: skip
    second = answer({**FIRST, "id": "resp_2", "output": [item]})
    links.remember(whole(), second)
    request = whole(RESULTS, second.message, Message.user("And now?"))
    short = links.linked(request, TARGET)
    assert short.state == State(previous_response_id="resp_2")
    assert [message.text for message in short.messages] == ["And now?"]


def test_fields_added_by_a_history_do_not_matter() -> None:
    """A stored and reloaded answer, with ids, times and metadata, is the same answer."""
    first = answer().message.replace(metadata={"seen": True}, created_at=5.0, usage=Usage(input=1))
    again = Message.from_json(first.to_json())
    asked = Message.from_json(ASKED.to_json()).replace(id="m-1")
    request = Request(messages=(asked, again, RESULTS))
    assert remembering().linked(request, TARGET).state == State(previous_response_id="resp_1")


def _edited() -> Message:
    first = answer().message
    call = first.tool_calls[0].replace(raw='{"city":"Bonn"}')
    return first.replace(parts=tuple(call if p is first.tool_calls[0] else p for p in first.parts))


@pytest.mark.parametrize(
    "request_",
    [
        whole(first=_edited()),
        whole().replace(messages=(answer().message, RESULTS)),
        whole().replace(messages=(Message.user("Something else"), answer().message, RESULTS)),
        whole().replace(messages=(Message.system("New."), *whole().messages)),
        whole().replace(messages=(ASKED.replace(name="Eve"), *whole().messages[1:])),
        whole(RESULTS, Message.assistant("By hand."), Message.user("So?")),
        whole().replace(messages=(ASKED, answer().message)),
        whole(Message.user("Never mind the tools.")),
        whole(Message.tool(ToolResult("call_1", "rain"))),
        whole(RESULTS, Message.tool(ToolResult("call_1", "again"))),
        whole(RESULTS, Message.tool(ToolResult("call_9", "whose?"))),
        whole(first=answer().message.replace(origin=None)),
        whole(model="gpt-4o"),
        whole(state=State(store=False)),
        whole(state=State(conversation="conv_1")),
        whole(state=State(previous_response_id="resp_0")),
        whole(extras={"openai-responses": {"store": False}}),
        whole(extras={"openai-responses": {"conversation": {"id": "conv_1"}}}),
        Request(messages=(ASKED,)),
        Request(),
    ],
    ids=[
        "edited", "cut off", "another question", "new instructions", "renamed", "written by hand",
        "nothing new", "calls unanswered", "a call unanswered", "answered twice", "a stray result",
        "origin unknown", "another model", "not stored", "a conversation", "the caller's own link",
        "not stored by extras", "a conversation in extras", "no answer", "empty",
    ],
)  # fmt: skip
def test_other_requests_are_sent_in_full(request_: Request) -> None:
    """After an edit, a truncation, or if results don't match, the request is unchanged."""
    assert remembering().linked(request_, TARGET) is request_


@pytest.mark.parametrize(
    "target",
    [
        None,
        TARGET.replace(provider="azure"),
        TARGET.replace(model="gpt-4o"),
        TARGET.with_flags({"state.fields": ()}),
        provider("openai").target(MODEL, "openai-chat"),
        provider("anthropic").target("claude-sonnet-4-5"),
        Target(dialect="openai-responses"),
    ],
)
def test_another_provider_gets_everything(target: Target | None) -> None:
    """A switch of provider, model or dialect, or a host that stores nothing, breaks the link."""
    request = whole()
    assert remembering().linked(request, target) is request


def test_providers_that_can_be_linked_to() -> None:
    """OpenAI and Azure store answers for long, and accept new instructions with them."""
    found = {
        name
        for name in provider_names()
        for target in provider(name).targets
        if "previous_response_id" in target.state.fields and target.host.resumes_answers
    }
    assert found == {"openai", "azure"}


def test_a_deployment_answers_under_another_name() -> None:
    """Azure's requests name a deployment, and answers name its model; the target has both."""
    target = provider("azure").target("ours", DIALECT.name)
    links = Links()
    links.remember(Request(messages=(ASKED,)), answer(place="azure"), target)
    request = whole(first=answer(place="azure").message)
    assert links.linked(request, target).state == State(previous_response_id="resp_1")
    assert links.linked(request, target.replace(model="theirs")) is request


def _cut_off(finish: FinishReason) -> Response:
    first = answer()
    return first.replace(choices=(first.choices[0].replace(finish=finish),))


@pytest.mark.parametrize(
    ("request_", "response"),
    [
        (Request(messages=(ASKED,), state=State(store=False)), answer()),
        (Request(messages=(ASKED,)), answer({**FIRST, "store": False})),
        (Request(messages=(ASKED,)), answer({k: v for k, v in FIRST.items() if k != "id"})),
        (Request(messages=(ASKED,)), _cut_off(FinishReason.LENGTH)),
        (Request(messages=(ASKED,)), _cut_off(FinishReason.ERROR)),
        (Request(messages=(ASKED,)), Response()),
        (
            Request(messages=(ASKED,)),
            Response(
                choices=(
                    Choice(
                        0,
                        Message.assistant("Hi").replace(
                            origin=Origin(dialect="openai-chat", response_id="resp_1")
                        ),
                    ),
                )
            ),
        ),
    ],
    ids=["not to be stored", "not stored", "without an id", "cut off", "failed", "empty", "chat"],
)
def test_answers_that_are_not_remembered(request_: Request, response: Response) -> None:
    """Answers that the provider has not stored, or that can't be continued."""
    links = Links()
    links.remember(request_, response)
    assert len(links) == 0


# --- when the provider has forgotten


def _gone(status: int | None, **fields: Any) -> ProviderError:
    error = {"message": "zqzq", "type": "invalid_request_error", **fields}
    return DIALECT.decode_error(status, {"error": error})


_GONE = _gone(400, code="previous_response_not_found", param="previous_response_id")


@pytest.mark.parametrize(
    ("error", "is_gone"),
    [
        (_GONE, True),
        (_gone(None, code="previous_response_not_found"), True),
        (_gone(400, param="previous_response_id"), True),
        (_gone(400, param="input"), True),
        (_gone(404), True),
        (_gone(404, code="model_not_found"), False),
        (_gone(400, param="tools[0].name"), False),
        (_gone(400), False),
        (_gone(401, param="previous_response_id"), False),
        (_gone(500), False),
        (ServerError("x"), False),
        (InvalidInputError("x"), False),
    ],
)
def test_errors_of_a_missing_answer(error: Exception, is_gone: bool) -> None:
    """Those about the id or about missing calls; and only after a shortened request."""
    links = remembering()
    short = links.linked(whole(), TARGET)
    assert links.is_forgotten(short, error) is is_gone
    assert not links.is_forgotten(whole(), error)


def test_a_forgotten_answer_is_not_used_again() -> None:
    """It is dropped by its id, or by the request that named it."""
    for what in ("resp_1", remembering().linked(whole(), TARGET)):
        links, request = remembering(), whole()
        links.forget(what)
        assert links.linked(request, TARGET) is request
        links.forget(what)
        links.forget(Request())


async def test_linking_with_a_server() -> None:
    """In full, then shortened; after the provider has forgotten, in full again."""
    lost = {
        "message": "Previous response not found.",
        "type": "invalid_request_error",
        "param": "previous_response_id",
        "code": "previous_response_not_found",
    }
    second = {**FIRST, "id": "resp_2", "output": []}
    links = Links()
    async with (
        serving(plain(FIRST), plain({"error": lost}, 400), plain(second)) as server,
        Client(f"openai:{MODEL}", base_url=server.url, key="k", dialect=DIALECT.name,
               retries=Retries(attempts=1)) as client,
    ):  # fmt: skip
        start = Request(messages=(ASKED,))
        links.remember(start, first := await client.send(start))
        request = whole(first=first.message)
        short = links.linked(request, TARGET)
        with pytest.raises(InvalidRequest) as raised:
            await client.send(short)
        assert raised.value.param == "previous_response_id"
        assert links.is_forgotten(short, raised.value)
        links.forget(short)
        assert links.linked(request, TARGET) is request
        await client.send(request)
    sent = [seen.json for seen in server.seen]
    assert [body.get("previous_response_id") for body in sent] == [None, "resp_1", None]
    assert [item["type"] for item in sent[1]["input"]] == [
        "function_call_output", "custom_tool_call_output"
    ]  # fmt: skip
    assert "function_call" in [item.get("type") for item in sent[2]["input"]]
    for body in sent:
        _check_request(body)
        assert DIALECT.check(body) == []


# --- bounds


def test_the_latest_are_kept() -> None:
    """The least recently used one is dropped first."""
    links = Links(most=2)
    for number in (1, 2):
        links.remember(Request(messages=(ASKED,)), answer({**FIRST, "id": f"resp_{number}"}))
    assert links.linked(whole(), TARGET).state is not None
    links.remember(Request(messages=(ASKED,)), answer({**FIRST, "id": "resp_3"}))
    assert len(links) == 2
    assert links.linked(whole(), TARGET).state is not None
    request = whole(first=answer({**FIRST, "id": "resp_2"}).message)
    assert links.linked(request, TARGET) is request
    for most in (0, -1, True, None, "2"):
        with pytest.raises(InvalidInputError):
            Links(most)  # type: ignore[arg-type]  # as people without a checker call it


def test_threads_may_share_links() -> None:
    """They remember, link and forget concurrently, and each finds its own."""
    links, failures = Links(most=8), []

    def work(number: int) -> None:
        try:
            for turn in range(200):
                wire = {**FIRST, "id": f"resp_{number}_{turn}"}
                links.remember(Request(messages=(ASKED,)), answer(wire))
                short = links.linked(whole(first=answer(wire).message), TARGET)
                ours = None if short.state is None else short.state.previous_response_id
                assert ours in (None, wire["id"])
                links.forget(wire["id"])
        except BaseException as error:  # noqa: BLE001 - shown below, in the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(links) == 0


def test_the_repr_shows_only_a_number() -> None:
    """No content is in it."""
    assert repr(remembering()) == "Links(1 answers)"
