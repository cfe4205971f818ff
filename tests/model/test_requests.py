"""Requests and what they are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dragoman.errors import InvalidInputError
from dragoman.model.functions.tool import tool
from dragoman.model.messages import Message
from dragoman.model.parts import Origin, Text
from dragoman.model.requests import Output, Request, Sampling, State, ThinkingConfig
from dragoman.model.tools import ServerTool, ToolDefinition, make_definition


def test_lists_become_tuples() -> None:
    """A request can't be changed through the lists it was made of."""
    messages = [Message.user("hi")]
    request = Request(system=[Text("be brief")], messages=messages, tools=[])  # type: ignore[arg-type]
    messages.append(Message.user("ho"))
    assert request.messages == (Message.user("hi"),)
    assert request.system == (Text("be brief"),)


def test_requests_say_the_same_whatever_their_extras() -> None:
    """Extras take no part in equality; metadata, which is the developer's own, does."""
    request = Request(model="m", messages=(Message.user("hi"),))
    assert request == request.replace(extras={"x": {"y": 1}})
    assert request != request.replace(metadata={"y": 1})
    assert request != request.replace(sampling=Sampling(temperature=0.5))


def test_a_request_takes_both_kinds_of_tools() -> None:
    """Ours and the provider's own stand side by side, in order."""
    ours, theirs = ToolDefinition.create("f", "It works."), ServerTool("web_search", "anthropic")
    request = Request(tools=(theirs, ours))
    assert request.tools == (theirs, ours)
    assert Request.from_json(request.to_json()).tools == (theirs, ours)


def test_writing_a_request_assigns_the_ids_of_its_messages() -> None:
    """What is read has the ids that the original has from then on."""
    request = Request(messages=(Message.user("hi"), Message.user("ho")))
    back = Request.from_json(request.to_json())
    assert [message.id for message in back.messages] == [m.id for m in request.messages]


def test_whole_numbers_may_be_written_as_floats() -> None:
    """JSON has one kind of number."""
    assert Sampling(max_tokens=1000.0).max_tokens == 1000  # type: ignore[arg-type]
    assert isinstance(Sampling(max_tokens=1000.0).max_tokens, int)  # type: ignore[arg-type]


def test_a_seed_may_be_any_integer() -> None:
    """Even one that no double holds."""
    seed = 2**70
    assert Sampling.from_json(Sampling(seed=seed).to_json()).seed == seed


@pytest.mark.parametrize(
    "value", [Output(format="json"), ThinkingConfig(effort="high"), State(store=False)]
)
def test_settings_are_equal_by_value(value: Any) -> None:
    """Two settings that ask for the same are equal, and extras take no part."""
    assert value == value.replace()
    if "extras" in value.__struct_fields__:
        assert value == value.replace(extras={"x": {"y": 1}})


@pytest.mark.parametrize(("make", "problem"), [
    (lambda: Request(model=5), "Request.model must be str"),  # type: ignore[arg-type]
    (lambda: Request(system="be brief"), "Request.system must be a sequence, not str"),  # type: ignore[arg-type]
    (lambda: Request(output="json"), "Request.output must be Output"),  # type: ignore[arg-type]
    (lambda: Request(thinking=True), "Request.thinking must be ThinkingConfig"),  # type: ignore[arg-type]
    (lambda: Request(state="x"), "Request.state must be State"),  # type: ignore[arg-type]
    (lambda: Request(stream=1), "Request.stream must be bool"),  # type: ignore[arg-type]
    (lambda: Request(metadata=[1]), "Request.metadata must be a mapping"),  # type: ignore[arg-type]
    (lambda: Sampling(stop="END"), "Sampling.stop must be a sequence, not str"),  # type: ignore[arg-type]
    (lambda: Sampling(seed="1"), "Sampling.seed must be int"),  # type: ignore[arg-type]
    (lambda: Sampling(logprobs=1), "Sampling.logprobs must be bool"),  # type: ignore[arg-type]
    (lambda: Output(format="yaml"), "Output.format must be text, json or schema"),  # type: ignore[arg-type]
    (lambda: Output(format=None), "Output.format must be"),  # type: ignore[arg-type]
    (lambda: Output(format=["json"]), "Output.format must be"),  # type: ignore[arg-type]
    (lambda: Output(schema=[1]), "Output.schema must be a mapping"),  # type: ignore[arg-type]
])  # fmt: skip
def test_wrong_types_are_refused(make: Callable[[], Any], problem: str) -> None:
    """What could not be read again is refused when it is made."""
    with pytest.raises(InvalidInputError, match=problem):
        make()


def test_a_function_made_a_tool_stands_for_its_definition() -> None:
    """What `@tool` makes can be given to a request as it is."""

    @tool
    def now() -> str:
        """The time."""
        return "noon"

    assert Request(tools=(now,)).tools == (now.definition,)  # type: ignore[arg-type]  # by its definition


def test_settings_may_be_given_all_together() -> None:
    """Those of the sampling among the others; what was set before stays."""
    request = Request(sampling=Sampling(seed=7)).with_settings(max_tokens=5, model="m")
    assert (request.sampling, request.model) == (Sampling(seed=7, max_tokens=5), "m")
    assert request.with_settings() is request
    with pytest.raises(InvalidInputError, match="no such field"):
        request.with_settings(max_token=5)


def test_the_functions_are_the_tools_that_the_caller_runs_with_arguments() -> None:
    """Neither free-text tools nor a provider's own are among them."""
    function = ToolDefinition.create("f", "It.")
    free = make_definition("g", kind="custom")
    request = Request(tools=(ServerTool("web_search", "anthropic"), function, free))
    assert request.functions == (function,)
    assert Request().functions == ()


def test_an_origin_is_final() -> None:
    """Type checkers refuse a subclass: code that compares origins can rely on their fields."""
    assert getattr(Origin, "__final__", False)
