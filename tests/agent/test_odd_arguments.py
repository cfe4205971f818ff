"""Arguments of the wrong type give our own error when the agent is created or called."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Self

import pytest

from dragoman import Agent, Message, RunLimits, tool
from dragoman.agent import Hooks, TypedOrchestrator
from dragoman.errors import InvalidInputError
from dragoman.testing import ScriptedModel
from tests.agent.scripts import asks, call, model, weather


@dataclass
class Seat:
    """What somebody might ask for."""

    row: str


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("tools", "x"),
        ("tools", 5),
        ("tools", [5]),
        ("tools", weather),
        ("system", 5),
        ("system", int),
        ("output", object()),
        ("output_mode", "other"),
        ("output_retries", -1),
        ("output_retries", True),
        ("limits", {"steps": 1}),
        ("hooks", []),
        ("executor", 5),
        ("orchestrator", 5),
        ("orchestrator", TypedOrchestrator),
        ("prices", 5),
        ("thinking", object()),
        ("tool_choice", 5),
        ("temperature", "hot"),
        ("unheard_of", 1),
    ],
)
def test_invalid_agents_are_rejected_when_created(argument: str, value: Any) -> None:
    """Not when they are first used."""
    with pytest.raises(InvalidInputError):
        Agent(model(), **{argument: value})


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("system_prompt", "mean system?"),
        ("message_history", "mean history"),
        ("api_key", "`Client`"),
        ("temprature", "mean temperature?"),
        ("sytem", "mean system?"),
        ("deps", "an option of a call"),
    ],
)
def test_a_misnamed_setting_gets_a_suggestion(name: str, advice: str) -> None:
    """For names of other libraries, and for typing errors."""
    settings: dict[str, Any] = {name: 1}
    with pytest.raises(InvalidInputError) as caught:
        Agent(model(), **settings)
    assert advice in str(caught.value)


async def test_tools_belong_to_the_agent() -> None:
    """The error for tools given to a call explains where they belong."""
    with pytest.raises(InvalidInputError, match="an option of the agent"):
        await Agent(model()).send("Hi", tools=[weather])  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("attribute", ["func", "coroutine", "function"])
def test_a_tool_of_another_library_names_its_function(attribute: str) -> None:
    """LangChain and pydantic-ai keep the function in an attribute, which the error names."""
    theirs: Any = SimpleNamespace(**{"func": None, "as_tool": print, attribute: print})
    with pytest.raises(InvalidInputError, match=f"itself, its attribute `{attribute}`"):
        Agent("echo:", tools=[theirs])


@pytest.mark.parametrize("value", [Seat("s3cret"), "s3cret", ("s3cret",), [str, "s3cret"], 5])
def test_an_output_is_a_type_and_not_a_value(value: Any) -> None:
    """The error names the value's type, and does not quote it."""
    with pytest.raises(InvalidInputError, match="must be a type") as caught:
        Agent(model(), output=value)
    assert "s3cret" not in str(caught.value)
    wrong = value[-1] if isinstance(value, (list, tuple)) else value
    assert type(wrong).__name__ in str(caught.value)


@pytest.mark.parametrize("value", [3, None, object(), ScriptedModel])
def test_a_model_is_a_name_or_a_model(value: Any) -> None:
    """Anything else is rejected."""
    with pytest.raises(InvalidInputError):
        Agent(value)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("approvals", ["a"]),
        ("approvals", None),
        ("approvals", {"a": 1}),
        ("results", None),
        ("history", 5),
        ("history", [5]),
        ("history", Message),
        ("limits", {}),
        ("limits", 0),
        ("output", object()),
        ("output_mode", "other"),
        ("tools", [weather]),
    ],
)
async def test_invalid_arguments_of_a_call_raise(argument: str, value: Any) -> None:
    """Before any request is made."""
    scripted = model("Hi.")
    with pytest.raises(InvalidInputError):
        await Agent(scripted).send("x", **{argument: value})
    assert scripted.requests == []


async def test_a_call_may_have_the_output_in_another_mode() -> None:
    """The type is the agent's, the mode the call's."""
    scripted = model('{"result": 7}')
    result = await Agent(scripted, output=int).send("x", output_mode="native", limits=None)
    assert result.output == 7
    assert scripted.requests[0].output is not None
    assert scripted.requests[0].tools == ()


@pytest.mark.parametrize(
    "name",
    [
        "before_send",
        "after_send",
        "before_response",
        "after_response",
        "before_tool_call",
        "after_tool_call",
    ],
)
@pytest.mark.parametrize("value", ["x", False, object()])
async def test_hooks_return_what_they_were_given_or_none(name: str, value: Any) -> None:
    """Anything else is an error: `False` before a tool call does not run the tool."""
    ran: list[str] = []

    @tool
    def act(city: str) -> None:
        """Takes effect."""
        ran.append(city)

    hooks = Hooks(**{name: lambda *_: value})
    agent = Agent(model(asks(call("act", city="Basel")), "Done."), tools=[act], hooks=hooks)
    with pytest.raises(InvalidInputError, match="hook"):
        await agent.send("x")
    assert (ran == []) == (name in {"before_send", "before_response", "after_response",
                                    "before_tool_call"})  # fmt: skip


async def test_instructions_are_not_evaluated_for_ever() -> None:
    """A function that returns itself is an error."""

    def system(_run: Any) -> Any:
        return system

    with pytest.raises(InvalidInputError, match="not another function"):
        await Agent(model("Hi."), system=system).send("x")


async def test_a_typed_orchestrator_needs_a_type() -> None:
    """The error explains that."""
    with pytest.raises(InvalidInputError, match="needs an output type"):
        await Agent(model("Hi."), orchestrator=TypedOrchestrator()).send("x")


def test_requires_approval_must_not_be_a_coroutine_function() -> None:
    """Its coroutine would always be true, and never be awaited."""

    async def asks_somebody(_arguments: Any) -> bool:
        return False

    with pytest.raises(InvalidInputError, match="sync function"):
        tool(name="act", description="x", requires_approval=asks_somebody)(lambda: None)  # type: ignore[arg-type]


class Own:
    """A custom model that violates the protocol."""

    name = "own:"

    async def send(self, _request: Any) -> Any:
        """Return something that isn't a `Response`."""
        return "Hi."

    def stream(self, _request: Any) -> Any:
        """Nothing."""

    async def close(self) -> None:
        """Nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Nothing."""


async def test_a_model_answers_with_a_response() -> None:
    """A custom model that returns something else raises."""
    odd: Any = Own()
    with pytest.raises(InvalidInputError, match="Response"):
        await Agent(odd).send("x")


@pytest.mark.parametrize(
    "history",
    [
        [{"role": "user", "parts": [{"text": "x"}]}],
        {"contents": [{"role": "user", "parts": [{"text": "x"}]}]},
        {"messages": [{"role": "user", "content": "x"}]},
        [{"role": "user", "content": [{"type": "text", "text": "x"}]}],
    ],
)
async def test_a_chat_takes_the_histories_that_a_call_takes(history: Any) -> None:
    """In any dialect, not only in those that resemble ours."""
    chat = Agent(model("Hi."), limits=RunLimits()).chat(history)
    await chat.send("y")
    assert [message.text for message in await chat.messages()] == ["x", "y", "Hi."]
