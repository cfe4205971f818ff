"""Random runs ("plays"): the model's answers, the tools, the settings and the history."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from hypothesis import strategies as st

from dragoman import (
    Agent,
    ConversationHistory,
    FinishReason,
    Image,
    Message,
    Policy,
    RunContext,
    RunLimits,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
    ToolResult,
    Usage,
    tool,
)
from dragoman.agent import Hooks
from dragoman.agent.executor import ToolExecutor
from dragoman.errors import InvalidRequest, ServerError, StreamInterrupted, ToolError, ToolRetry
from dragoman.model.functions.tool import Tool
from dragoman.model.messages import make_message
from dragoman.model.parts import Opaque, Refusal, ServerToolCall, ServerToolResult
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.tools import make_call
from dragoman.testing import ScriptedModel
from dragoman.transport.synthetic_answers import spoken

SECRET = "geheim"
"""Stands in all that is said, so that it can be looked for where nothing said may be."""
PICTURE = Image.from_bytes(b"\x89PNG geheim", mime="image/png")
_DEEP = '{"word": ' + "[" * 300 + "]" * 300 + "}"


class OwnExit(BaseException):
    """An exception of a tool that is not an `Exception`."""


# --- tools


def _tool(name: str, function: Callable[..., Any], **options: Any) -> Tool[..., Any]:
    return tool(name=name, description=f"Does {name}.", **options)(function)


def _raising(error: Callable[[], BaseException]) -> Callable[..., Any]:
    def raises() -> NoReturn:
        raise error()

    return raises


def _raising_later(error: Callable[[], BaseException]) -> Callable[..., Any]:
    async def raises() -> NoReturn:
        await asyncio.sleep(0)
        raise error()

    return raises


def _returning(value: Any) -> Callable[..., Any]:
    def returns() -> Any:
        return value

    return returns


async def _echo(word: str = SECRET) -> str:
    return f"{word}!"


def _shout(word: str) -> str:
    return word.upper() + SECRET


async def _endless() -> None:
    await asyncio.Event().wait()


async def _told(run: RunContext[Any], word: str = "") -> dict[str, Any]:
    return {"step": run.step, "word": word, "call": run.call is not None}


def _free(text: str) -> str:
    return f"{SECRET} {text}"


def _unsure(_arguments: Any) -> bool:
    raise ValueError(SECRET)


_FREE = Tool(_free, ToolDefinition("free", "Takes any text.", kind="custom"))
TOOLS: dict[str, Any] = {
    each.name: each
    for each in (
        _tool("echo", _echo),
        _tool("shout", _shout),
        _tool("told", _told),
        _tool("fails", _raising(lambda: ValueError(SECRET))),
        _tool("fails_later", _raising_later(lambda: KeyError(SECRET))),
        _tool("says_why", _raising(lambda: ToolError(SECRET))),
        _tool("again", _raising_later(lambda: ToolRetry(SECRET))),
        _tool("leaves", _raising(lambda: OwnExit(SECRET))),
        _tool("leaves_later", _raising_later(lambda: OwnExit(SECRET))),
        _tool("cancels", _raising_later(asyncio.CancelledError)),
        _tool("closes", _raising_later(GeneratorExit)),
        _tool("stops", _raising(StopIteration)),
        _tool("late", _endless, timeout=0.001),
        _tool("nothing", _returning(None)),
        _tool("data", _returning({"a": [1, SECRET, None], "b": float("nan")})),
        _tool("pictures", _returning([SECRET, PICTURE, {"x": 1}])),
        _tool("odd", _returning(object())),
        _tool("result", _returning(ToolResult.error("other", SECRET))),
        _tool("danger", _shout, requires_approval=True),
        _tool("unsure", _shout, requires_approval=_unsure),
        _FREE,
        ToolDefinition.create("mine", "The caller's."),
    )
}

# --- answers

texts = st.sampled_from(
    ["", " ", f"{SECRET}", f"a {SECRET} b", '{"result": 7}', '{"result": "x"}', "\n", "geheim 🐉"]
)
names = st.sampled_from([*TOOLS, *TOOLS, "nobody", "return_result", ""])
ids = st.sampled_from(["a", "b", "c", "d", ""])
raws = st.sampled_from(
    ["", "{}", f'{{"word": "{SECRET}"}}', '{"word": 1}', "{", "[1]", "null", _DEEP,
     '{"result": 7}', '{"result": "geheim"}', '{"word": "x", "word2": NaN}']
)  # fmt: skip
calls = st.one_of(
    st.builds(make_call, ids, names, raws),
    st.builds(lambda id, name: make_call(id, name, input={"word": SECRET}), ids, names),
    st.builds(lambda id, name, raw: make_call(id, name, raw, kind="custom"), ids, names, raws),
)
parts = st.one_of(
    st.builds(Text, texts),
    st.builds(Thinking, texts),
    st.builds(lambda text: Thinking(text, signature="c2ln"), texts),
    st.builds(Refusal, texts),
    calls,
    calls,
    st.just(PICTURE),
    st.just(Opaque("novel", {"type": "novel", "word": SECRET})),
)
_searched = [
    ServerToolCall("web_search", "s1", {"query": SECRET}),
    ServerToolResult("web_search", "s1", {"found": SECRET}),
]
contents = st.lists(parts.map(lambda part: [part]) | st.just(_searched), max_size=4).map(
    lambda pieces: [part for piece in pieces for part in piece]
)
finishes = st.sampled_from([*FinishReason, *[FinishReason.STOP] * 5])
usages = st.none() | st.builds(Usage, st.integers(0, 9), st.integers(0, 9), thinking=st.just(1))


def _choice(index: int, parts: Sequence[Any], finish: FinishReason) -> Choice:
    return Choice(index, make_message(Role.ASSISTANT, tuple(parts), finish=finish), finish)


@st.composite
def responses(draw: st.DrawFn) -> Response:
    """Any answer, including unusual ones."""
    count = draw(st.sampled_from([1, 1, 1, 1, 0, 2]))
    choices = [_choice(i, draw(contents), draw(finishes)) for i in range(count)]
    return Response(choices=tuple(choices), usage=draw(usages), model="m", id="r1")


def _failure(number: int) -> Exception:
    if not number:
        return InvalidRequest("bad", status=400, code="tool_use_failed")
    return ServerError("down", status=500)


def _broken(response: Response) -> list[Any]:
    told = list(spoken(response))
    return [*told[: len(told) // 2], StreamInterrupted("broken off")]


steps: st.SearchStrategy[Any] = st.one_of(
    *[responses()] * 8, st.builds(_failure, st.integers(0, 1)), responses().map(_broken)
)


def events(step: Any) -> Any:
    """A step as events, the same for streaming and plain requests."""
    return list(spoken(step)) if isinstance(step, Response) else step


# --- settings


def _renamed(call: ToolCall, _run: Any) -> Any:
    return ToolCall("z", "echo", '{"word": "hook"}') if call.name == "shout" else None


def _vetoed(call: ToolCall, _run: Any) -> Any:
    if call.name == "fails":
        raise ToolError(SECRET)
    return ToolResult.success("q", SECRET) if call.name == "data" else None


async def _marked(_call: ToolCall, result: ToolResult, _run: Any) -> ToolResult:
    return ToolResult.success("w", f"{result.text}.", tool_name=result.tool_name)


def _picky(value: Any, run: RunContext[Any]) -> Any:
    if run.step < 2:
        raise ToolRetry(SECRET)
    return value


hooks = st.sampled_from(
    [
        None,
        None,
        Hooks(before_tool_call=_renamed),
        Hooks(before_tool_call=_vetoed, after_tool_call=_marked),
        Hooks(before_output=_picky),
        Hooks(after_response=lambda response, _: response.replace(id="changed")),
        Hooks(before_send=lambda _prompt, _run: Message.user("instead")),
    ]
)
outputs = st.sampled_from([None, None, None, int, list[int], dict[str, int], int | str])
modes = st.sampled_from([None, "native", "tool", "two_phase"])
limits = st.sampled_from(
    [
        RunLimits(steps=6),
        RunLimits(steps=6),
        RunLimits(steps=3, calls=2),
        RunLimits(steps=None, repeats=2),
        RunLimits(tokens=20),
        RunLimits(seconds=60),
    ]
)
choices_of_tools = st.sampled_from([None, None, "required", "none", "echo"])
executors = st.sampled_from([ToolExecutor(), ToolExecutor(limit=1), ToolExecutor(limit=2),
                             ToolExecutor(limit=None)])  # fmt: skip

# --- histories


def _pending(*calls: ToolCall, done: int = 0) -> list[Message]:
    results = [ToolResult.success(call.id, SECRET, tool_name=call.name) for call in calls[:done]]
    start = [Message.user(SECRET), Message.assistant(tool_calls=calls)]
    return [*start, Message.tool(*results)] if results else start


_good_calls = st.lists(
    st.builds(
        lambda name: (name, {"word": SECRET}),
        st.sampled_from(["echo", "shout", "danger", "unsure", "mine", "nobody", "return_result"]),
    ),
    min_size=1,
    max_size=3,
).map(lambda given: [ToolCall.create(f"p{i}", *each) for i, each in enumerate(given)])
histories: st.SearchStrategy[list[Message]] = st.one_of(
    st.just([]),
    st.just([Message.user(SECRET), Message.assistant(SECRET)]),
    st.just([Message.user(SECRET)]),
    st.builds(lambda calls, done: _pending(*calls, done=done), _good_calls, st.integers(0, 2)),
)
_decisions: st.SearchStrategy[bool | str] = st.sampled_from([True, False, SECRET])
KINDS = ("messages", "dicts", "strict", "lenient", "chat")
_FITTING = {
    int: '{"result": 7}',
    list[int]: '{"result": [1, 7]}',
    dict[str, int]: '{"geheim": 1}',
    int | str: '{"result": "geheim"}',
}
"""How a script ends: with an answer of the type that is asked for."""


@dataclass(slots=True)
class Play:
    """Everything that a run depends on."""

    steps: list[Any]
    tools: list[str]
    history: list[Message]
    kind: str
    prompt: str | None
    approvals: dict[str, bool | str]
    results: dict[str, Any]
    settings: dict[str, Any] = field(default_factory=dict)

    def agent(self) -> Agent:
        """A new agent whose model starts the script from its beginning."""
        fits = _FITTING.get(self.settings["output"], f"Done, {SECRET}.")
        script = [*map(events, self.steps), *[fits] * 60]
        tools = [TOOLS[name] for name in self.tools]
        return Agent(ScriptedModel(script), tools=tools, system=SECRET, **self.settings)

    def options(self, history: Any) -> dict[str, Any]:
        """The options of the call."""
        return {"history": history, "approvals": self.approvals, "results": self.results}

    @property
    def content(self) -> tuple[str, ...]:
        """The user's message."""
        return () if self.prompt is None else (self.prompt,)


@st.composite
def plays(draw: st.DrawFn) -> Play:
    """Any play."""
    history = draw(histories)
    done = {result.call_id for message in history for result in message.tool_results}
    called = [call for message in history for call in message.tool_calls]
    waiting = [call.id for call in called if call.id not in done]
    goes_on = bool(waiting) or (bool(history) and history[-1].role is not Role.ASSISTANT)
    strays = ["stray"] if draw(st.integers(0, 19)) == 7 else []
    some = st.lists(st.sampled_from([*waiting, *strays]), unique=True, max_size=2)
    decided = draw(some) if goes_on and waiting else []
    told = draw(some) if goes_on and waiting else strays
    return Play(
        steps=draw(st.lists(steps, max_size=4)),
        tools=draw(st.lists(st.sampled_from([*TOOLS]), unique=True, max_size=12)),
        history=history,
        kind=KINDS[draw(st.randoms(use_true_random=False)).randrange(len(KINDS))],
        prompt=draw(st.sampled_from([None, SECRET] if goes_on else [SECRET])),
        approvals={key: draw(_decisions) for key in decided},
        results={key: draw(st.sampled_from([SECRET, 7, None, PICTURE])) for key in told},
        settings={
            "output": draw(outputs),
            "output_mode": draw(modes),
            "hooks": draw(hooks),
            "limits": draw(limits),
            "tool_choice": draw(choices_of_tools),
            "executor": draw(executors),
        },
    )


def growing(history: list[Message], kind: str) -> Any:
    """A history of the caller's, in one of its forms; not for `chat`, which must be opened."""
    if kind == "messages":
        return list(history)
    if kind == "dicts":
        return [message.to_dict() for message in history]
    if kind == "lenient":
        return ConversationHistory(history, policy=Policy.LENIENT)
    return ConversationHistory([Message.system(SECRET), *history], policy=Policy.STRICT)
