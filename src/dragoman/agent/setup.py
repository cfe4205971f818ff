"""The configuration of an agent, and what a call may change of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dragoman.agent.executor import ToolExecutor
from dragoman.agent.hooks import Hooks
from dragoman.agent.limits import RunLimits
from dragoman.agent.toolbox import DynamicTools, Toolbox
from dragoman.errors import InvalidInputError
from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message
from dragoman.model.requests import Request, Sampling, ThinkingConfig
from dragoman.model.spelling import closest
from dragoman.model.tools import ToolChoice
from dragoman.model.value import expect
from dragoman.providers.prices import LISTED, Prices
from dragoman.transport.model import Model

if TYPE_CHECKING:
    from dragoman.agent.orchestrator import Orchestrator
    from dragoman.agent.output.typed import TypedOutput
    from dragoman.agent.response_chaining import Links

System = Callable[..., Any] | tuple[AnyPart, ...]

_MODES = ("auto", "none", "required")
_OWN = frozenset({"model", "system", "messages", "tools", "stream"})
_OF_AGENTS = frozenset({"dynamic_tools", "executor", "history_hooks", "hooks", "links_responses",
                        "model", "name", "orchestrator", "output_retries", "prices", "system",
                        "tools"})  # fmt: skip
_OF_CALLS = frozenset({"approvals", "deps", "history", "results", "within"})
_BY_OTHER_NAMES = {
    **dict.fromkeys(("instructions", "prompt", "system_message", "system_prompt"), "system"),
    **dict.fromkeys(("chat_history", "message_history", "messages"), "history, of a call"),
    **dict.fromkeys(("output_type", "response_format", "response_model", "result_type"), "output"),
    **dict.fromkeys(("context", "deps_type"), "deps, of a call"),
    **dict.fromkeys(("handoffs", "handovers"), "tools, with `agent.as_handoff(…)`"),
    **dict.fromkeys(("history_processors", "input_filter"), "hooks, with before_response"),
    **dict.fromkeys(("output_validator", "output_guardrails"), "hooks, with before_output"),
    "usage": "within, of a call",
    **dict.fromkeys(("api_key", "base_url", "key", "retries", "timeout"), "those of `Client`"),
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "stop_sequences": "stop",
    "usage_limits": "limits",
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Setup:
    """The configuration of an agent."""

    model: Model
    name: str = ""
    """The name of the agent, for people and traces; models don't see it."""
    tools: Toolbox = field(default_factory=Toolbox)
    dynamic_tools: DynamicTools | None = None
    """Returns further tools, before each request."""
    system: System = ()
    request: Request = field(default_factory=Request)
    """The settings of every request: sampling, thinking, tool choice and the rest."""
    output: TypedOutput | None = None
    output_retries: int = 2
    limits: RunLimits = field(default_factory=RunLimits)
    hooks: Hooks = field(default_factory=Hooks)
    approve: Callable[..., Any] | None = None
    """Decides on calls that need approval; None: the caller decides after the run."""
    executor: ToolExecutor = field(default_factory=ToolExecutor)
    orchestrator: Orchestrator | None = None
    prices: Prices = LISTED
    history_hooks: Mapping[str, Any] = EMPTY
    links: Links | None = None
    """Remembers responses stored by the provider; None: every request is sent whole."""


def checked_function(function: Any, name: str, of: str) -> Any:
    """The given function or None; raises if it is neither."""
    if function is not None and not callable(function):
        msg = f"{name} must be a function of {of}, not {type(function).__name__}"
        raise InvalidInputError(msg)
    return function


def system_of(system: Any) -> System:
    """The system prompt as given: a text, parts, or a function that returns either."""
    if system is None:
        return ()
    if callable(system) and not isinstance(system, type):
        return system  # type: ignore[no-any-return]  # whatever it returns is read in its turn
    pieces: list[Any] = [*system] if isinstance(system, (list, tuple)) else [system]
    return Message.system(*pieces).parts


def request_with(request: Request, settings: Mapping[str, Any]) -> Request:
    """The request with settings as given: `max_tokens=500, thinking="high"`."""
    _expect_known(settings)
    given = dict(settings)
    if "thinking" in given:
        given["thinking"] = thinking_of(given["thinking"])
    if "tool_choice" in given:
        given["tool_choice"] = tool_choice_of(given["tool_choice"])
    return request.with_settings(**given)


def _expect_known(settings: Mapping[str, Any]) -> None:
    known = (set(Request.__struct_fields__) | set(Sampling.__struct_fields__)) - _OWN
    unknown = [name for name in settings if name not in known]
    if unknown:
        names = ", ".join(sorted(known))
        named = ", ".join(f"{name}{_meant(name, known)}" for name in unknown)
        msg = f"an agent has no setting {named}; the settings are {names}"
        raise InvalidInputError(msg)


def _meant(name: str, known: set[str]) -> str:
    """A hint what to write instead, if it can be guessed."""
    if name in _OF_AGENTS:
        return " (it is an option of the agent, not of a call)"
    if name in _OF_CALLS:
        return " (it is an option of a call, not of the agent)"
    meant = _BY_OTHER_NAMES.get(name) or closest(name, known | _OF_AGENTS | _OF_CALLS)
    return "" if meant is None else f" (did you mean {meant}?)"


def thinking_of(thinking: Any) -> ThinkingConfig | None:
    """A `ThinkingConfig` from True, False, an effort, a number of tokens, or a config."""
    if thinking is None or isinstance(thinking, ThinkingConfig):
        return thinking
    if isinstance(thinking, bool):
        return ThinkingConfig(enabled=thinking, visible=True if thinking else None)
    if isinstance(thinking, int):
        return ThinkingConfig(enabled=True, budget=thinking, visible=True)
    expect(thinking, str, "thinking")
    if thinking == "none":
        return ThinkingConfig(enabled=False, effort=thinking)  # there is nothing to show
    return ThinkingConfig(enabled=True, effort=thinking, visible=True)


def tool_choice_of(choice: Any) -> ToolChoice | None:
    """A `ToolChoice` from `auto`, `none`, `required`, a tool name, or a `ToolChoice`."""
    if choice is None or isinstance(choice, ToolChoice):
        return choice
    expect(choice, str, "tool_choice")
    return ToolChoice(choice) if choice in _MODES else ToolChoice("named", (choice,))


def prompt_of(content: Sequence[Any]) -> Message | None:
    """The user's message, from texts and media or a whole message; None if empty."""
    if not content:
        return None
    if len(content) > 1:
        return Message.user(*content)
    only = content[0]
    is_nothing = isinstance(only, (list, tuple)) and not only
    return None if is_nothing else Message.from_any(only)
