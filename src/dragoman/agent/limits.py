"""Limits of a run, and counting towards them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NoReturn

from dragoman.errors import ConfigError, InvalidInputError, LimitExceeded
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.usage import Usage
from dragoman.model.value import expect_number, name_shown
from dragoman.providers.price import Amount, dollars

_MAX_CYCLE = 3
_ANY_ID = "any"  # in place of ids
_MINIMUMS = {"steps": 1, "calls": 0, "tokens": 1, "repeats": 2, "retries": 0}
_ADVICE = "raise the limit, or remove it with None"

_Round = tuple[tuple[ToolCall, ToolResult], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """Limits for one run of an agent; None means unlimited.

    A run that exceeds one ends with `LimitExceeded`; the messages so far stay in the conversation.
    Other agents called within a run (`as_tool`, `within=`) count towards its limits.
    """

    steps: int | None = 50
    """Maximum requests to the model."""
    calls: int | None = None
    """Maximum tool calls. A round that would exceed it is not started."""
    tokens: int | None = None
    """Maximum tokens of all requests and responses, including thinking and cached tokens and those
    that the provider bills besides (Anthropic's compaction), as counted by the provider. They are
    counted after each response, so the last one may exceed the limit. If the provider reports no
    counts, `ConfigError` is raised."""
    cost: Amount | None = None
    """Maximum cost in US dollars, counted like `tokens`. If the price is unknown, `ConfigError` is
    raised: a limit that can't be enforced is not ignored."""
    seconds: float | None = None
    """Maximum duration in seconds."""
    repeats: int | None = 5
    """Maximum consecutive repetitions of the same calls with the same results, in cycles of one to
    three rounds: then the model is stuck in a loop, and the run is stopped."""
    retries: int | None = None
    """Maximum consecutive retries after failures of a tool (invalid arguments, `ToolRetry`, any
    exception), for tools without their own limit (`@tool(retries=2)`)."""

    def __post_init__(self) -> None:
        for name, least in _MINIMUMS.items():
            _expect_count(getattr(self, name), least, f"RunLimits.{name}")
        expect_number(self.seconds, "RunLimits.seconds")
        if self.seconds is not None and not self.seconds > 0:
            msg = "RunLimits.seconds must be positive or None"
            raise InvalidInputError(msg)
        if self.cost is not None:
            object.__setattr__(self, "cost", dollars(self.cost, "RunLimits.cost"))
            if not self.cost:
                msg = "RunLimits.cost must be positive or None"
                raise InvalidInputError(msg)


def _expect_count(value: object, least: int, what: str) -> None:
    if value is not None and (type(value) is not int or value < least):
        msg = f"{what} must be an integer of at least {least}, or None"
        raise InvalidInputError(msg)


class Tally:
    """Counts what a run has used. Raises `LimitExceeded` if that is too much."""

    __slots__ = (
        "_failed",
        "_is_counted",
        "_most",
        "_parent",
        "_same",
        "_seen",
        "_steps",
        "_unpriced",
        "cost",
        "limits",
        "ran",
        "steps",
        "tokens",
    )

    def __init__(self, limits: RunLimits | None = None, parent: Tally | None = None) -> None:
        self.limits = limits or RunLimits()
        self._parent = parent
        self.steps = 0
        """Requests to the model."""
        self._steps = 0  # including those of nested runs
        self.ran = 0
        """Tool calls that were run, including those of nested runs."""
        self.tokens = 0
        """Tokens counted by providers, including nested runs."""
        self.cost = Decimal(0)
        """Known cost in US dollars, including nested runs."""
        self._is_counted = True
        self._unpriced: str | None = None  # the first model whose answer has no known cost
        most = self.limits.cost
        self._most = None if most is None else dollars(most, "RunLimits.cost")
        self._failed: dict[str, int] = {}  # consecutive rounds, by tool name
        self._seen: deque[_Round] = deque(maxlen=_MAX_CYCLE)
        # By cycle length: the number of consecutive rounds equal to the one that many rounds
        # before.
        self._same = [0] * (_MAX_CYCLE + 1)

    def step(self) -> None:
        """A request is about to be sent."""
        self._add_step()
        self.steps += 1

    def _add_step(self) -> None:
        if self._parent is not None:
            self._parent._add_step()
        most = self.limits.steps
        if most is not None and self._steps >= most:
            _stop(f"this run has sent {most} requests to the model", "steps")
        tokens = self.limits.tokens
        if tokens is not None and self.tokens >= tokens:
            _stop(f"this run has used all of its {tokens:,} tokens", "tokens")
        if self._most is not None and self.cost >= self._most:
            _stop(f"this run has spent all of its {self._most} US dollars", "cost")
        self._steps += 1

    def calls(self, count: int) -> None:
        """That many calls are about to be run."""
        if self._parent is not None:
            self._parent.calls(count)
        most = self.limits.calls
        if most is not None and self.ran + count > most:
            done = f"{self.ran} tool calls were run, and the model requests {count} more"
            _stop(f"{done}; the maximum is {most}", "calls")
        self.ran += count

    def used(self, usage: Usage | None, cost: Decimal | None, model: str = "") -> None:
        """A model's response has arrived, with its usage and cost; None: unknown."""
        if self._parent is not None:
            self._parent.used(usage, cost, model)
        self._is_counted &= usage is not None
        if cost is None and self._unpriced is None:
            self._unpriced = model
        self.tokens += 0 if usage is None else usage.billed
        self.cost += cost or 0

    def check(self) -> None:
        """Raise if a limit is exceeded; called after the response is stored, as it was paid for."""
        if self._parent is not None:
            self._parent.check()
        self._check_tokens()
        self._check_cost()

    def _check_tokens(self) -> None:
        most = self.limits.tokens
        if most is None:
            return
        if not self._is_counted:
            msg = (
                "RunLimits.tokens can't be enforced: the provider reports no token counts;"
                " limit steps or seconds instead"
            )
            raise ConfigError(msg)
        if self.tokens > most:
            _stop(f"this run has used {self.tokens:,} tokens of {most:,}", "tokens")

    def _check_cost(self) -> None:
        if self._most is None:
            return
        if self._unpriced is not None:
            raise unknown_cost(self._unpriced)
        if self.cost > self._most:
            _stop(f"this run has spent {self.cost} US dollars of {self._most}", "cost")

    def ended(self, name: str, retries: int | None, *, has_failed: bool) -> None:
        """A round has ended in which all calls of a tool failed, or not all of them."""
        self._failed[name] = self._failed.get(name, 0) + 1 if has_failed else 0
        most = self.limits.retries if retries is None else retries
        if most is not None and self._failed[name] > most:
            times = "once" if most == 0 else f"{most + 1} times in a row"
            msg = f"`{name}` failed {times} (retries={most}, of the tool or of RunLimits)"
            raise LimitExceeded(msg)

    def seen(self, call: ToolCall, result: ToolResult) -> None:
        """A round with a single call has ended."""
        self.round(((call, result),))

    def round(self, pairs: Sequence[tuple[ToolCall, ToolResult]]) -> None:
        """A round of tools has ended: its calls and their results, in order."""
        most = self.limits.repeats
        if most is None:
            return
        current = tuple([_without_ids(*pair) for pair in pairs])
        for length in range(1, _MAX_CYCLE + 1):
            is_same = length <= len(self._seen) and self._seen[-length] == current
            self._same[length] = self._same[length] + 1 if is_same else 0
        self._seen.append(current)
        if any(self._same[length] >= length * (most - 1) for length in range(1, len(self._same))):
            done = f"the same tool calls gave the same results {most} times in a row"
            _stop(f"{done}; the model is stuck in a loop", "repeats")


def _without_ids(call: ToolCall, result: ToolResult) -> tuple[ToolCall, ToolResult]:
    """A call and its result without ids, which differ in each round, for comparison."""
    return call.replace(id=_ANY_ID), result.replace(call_id=_ANY_ID)


def unknown_cost(model: str) -> ConfigError:
    """The error for a cost limit without a known price."""
    named = name_shown(model)
    which, key = (f"`{model}`", model) if named else ("this model", "provider:model")
    msg = (
        f"RunLimits.cost can't be enforced: the price of {which} is unknown; pass it to the"
        f' agent, prices=Prices({{"{key}": Price(input, output)}}), or limit tokens instead'
    )
    return ConfigError(msg)


def _stop(what: str, limit: str) -> NoReturn:
    msg = f"{what} (RunLimits.{limit}); {_ADVICE}"
    raise LimitExceeded(msg)
