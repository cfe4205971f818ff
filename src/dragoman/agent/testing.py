"""`TestModel`: a model for tests that generates its answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import UNSET

from dragoman.agent.json_values import Walk
from dragoman.agent.made_up import made_up
from dragoman.agent.output.wording import TOOL_NAME
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import dumps
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCall, ToolDefinition, make_call
from dragoman.model.validation.problems import problems
from dragoman.providers.price import Amount, dollars
from dragoman.transport.scripted import ScriptedModel, response_of
from dragoman.transport.synthetic_answers import estimated_usage

_NOTHING_CALLED = "There was no tool to call."


class TestModel(ScriptedModel):
    """Calls every tool once, with arguments generated from its schema, and then answers.

    ```python
    with agent.override(model=TestModel()):
        result = await agent.send("Hello")
    ```

    The answer is the results of the tools, as JSON, or `text`; for a typed output, a generated
    value, or `output`. It is deterministic. `tools` limits the tools that are called, `arguments`
    sets arguments by tool name, `cost` what each answer costs, in US dollars. `requests` lists the
    received requests.
    """

    __test__ = False  # pytest would collect it as a test class

    def __init__(
        self,
        *,
        tools: Iterable[str] | None = None,
        arguments: Mapping[str, Mapping[str, Any]] = EMPTY,
        text: str | None = None,
        output: Any = UNSET,
        cost: Amount = 0,
        name: str = "test:",
    ) -> None:
        super().__init__([self._answered], name=name, repeat=True)
        self._cost = float(dollars(cost, "the cost of an answer"))
        self._tools = None if tools is None else frozenset(tools)
        self._arguments = arguments
        self._text = text
        self._output = output

    def __repr__(self) -> str:
        return f"TestModel({len(self.requests)} requests)"

    def _answered(self, request: Request) -> Response | Message:
        message = self._answer(request)
        if not self._cost:
            return message
        usage = estimated_usage(request, message)
        about = {**usage.extras["dragoman"], "cost": self._cost}
        response = response_of(message, request)
        return response.replace(usage=usage.replace(extras={"dragoman": about}))

    def _answer(self, request: Request) -> Message:
        tools = [each for each in request.tools if isinstance(each, ToolDefinition)]
        turn = _turn(request.messages)
        called = {call.name for message in turn for call in message.tool_calls}
        returning = _returning(tools, request)
        rest = [each for each in tools if each.name not in called and each is not returning]
        if self._tools is not None:
            rest = [each for each in rest if each.name in self._tools]
        if rest:
            count = sum(len(message.tool_calls) for message in request.messages)
            return Message.assistant(
                tool_calls=[self._call(each, count + n) for n, each in enumerate(rest, 1)]
            )
        if returning is not None:
            value = self._value(returning.parameters or EMPTY)
            call = make_call("call_output", returning.name, input=value)
            return Message.assistant(tool_calls=[call])
        if request.output is not None and request.output.schema is not None:
            return Message.assistant(dumps(self._value(request.output.schema)).decode("utf-8"))
        return Message.assistant(_told(turn) if self._text is None else self._text)

    def _call(self, tool: ToolDefinition, number: int) -> ToolCall:
        if tool.kind == "custom":
            return make_call(f"call_{number}", tool.name, "a", kind="custom")
        arguments = self._arguments.get(tool.name)
        if arguments is None:
            arguments = made_up(tool.parameters or EMPTY, f"the arguments of `{tool.name}`")
        return make_call(f"call_{number}", tool.name, input=arguments)  # its name is the agent's

    def _value(self, schema: Mapping[str, Any]) -> Any:
        if self._output is UNSET:
            return made_up(schema, "the output")
        value = Walk().json(self._output)
        is_wrapped = [*schema.get("properties", EMPTY)] == ["result"] and problems(schema, value)
        return {"result": value} if is_wrapped else value


def _turn(messages: Sequence[Message]) -> list[Message]:
    """The messages since the last user message."""
    turn: list[Message] = []
    for message in reversed(messages):
        if message.role.value == "user" and not message.tool_results:
            break
        turn.append(message)
    return turn[::-1]


def _returning(tools: Sequence[ToolDefinition], request: Request) -> ToolDefinition | None:
    """The tool that takes the output, if any: the last one, when a call is required."""
    choice = request.tool_choice
    if not tools or choice is None or choice.mode != "required":
        return None
    return tools[-1] if tools[-1].name.startswith(TOOL_NAME) else None


def _told(turn: Sequence[Message]) -> str:
    """The results of the tools, by name."""
    names = {call.id: call.name for message in turn for call in message.tool_calls}
    results = [result for message in turn for result in message.tool_results]
    if not results:
        return _NOTHING_CALLED
    told = {
        names.get(each.call_id, each.call_id): each.text if each.data is UNSET else each.data
        for each in results
    }
    return dumps(told).decode("utf-8")
