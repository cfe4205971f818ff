"""How far a run may go, and how far it has gone."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NoReturn

from dragoman.errors import ConfigError, InvalidInputError, LimitExceeded
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.usage import Usage
from dragoman.model.value import expect_number
from dragoman.providers.price import Amount, dollars

_LONGEST_CYCLE = 3
_ANY = "any"  # in place of ids
_LEAST = {"steps": 1, "calls": 0, "tokens": 1, "repeats": 2, "retries": 0}
_RAISE = "raise the limit, or None takes it away"

_Round = tuple[tuple[ToolCall, ToolResult], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """What one run of an agent may take; None: as much as it likes.

    A run that goes further ends with `LimitExceeded`; what is in the conversation by then stays.
    What other agents use within a run (`as_tool`, `within=`) counts for it as well.
    """

    steps: int | None = 50
    """How often the model is asked."""
    calls: int | None = None
    """How many tool calls are run. A round that would be too much is not begun."""
    tokens: int | None = None
    """How many tokens all requests and answers may have together, thinking and cached ones
    included, as the provider counts them. They are counted when an answer is there, so the last
    one may go beyond. A provider that does not count raises `ConfigError`."""
    cost: Amount | None = None
    """How many US dollars may be spent, as `tokens`. Where the price is not known, `ConfigError` is
    raised: a limit that can't be kept is not ignored."""
    seconds: float | None = None
    """How long it may take altogether."""
    repeats: int | None = 5
    """How often in a row the same calls may have the same results, alone or in turns of two or
    three rounds, before the run is stopped: the model goes in circles."""
    retries: int | None = None
    """How often in a row calls of a tool may fail (arguments that don't fit, `ToolRetry`, any
    exception) and be tried again, where the tool does not say so itself (`@tool(retries=2)`)."""

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            _expect_count(getattr(self, name), least, f"RunLimits.{name}")
        expect_number(self.seconds, "RunLimits.seconds")
        if self.seconds is not None and not self.seconds > 0:
            msg = "RunLimits.seconds must be above zero, or None"
            raise InvalidInputError(msg)
        if self.cost is not None:
            object.__setattr__(self, "cost", dollars(self.cost, "RunLimits.cost"))
            if not self.cost:
                msg = "RunLimits.cost must be above zero, or None"
                raise InvalidInputError(msg)


def _expect_count(value: object, least: int, what: str) -> None:
    if value is not None and (type(value) is not int or value < least):
        msg = f"{what} must be a whole number from {least} on, or None"
        raise InvalidInputError(msg)


class Tally:
    """What a run has taken so far. Raises `LimitExceeded` where that is too much."""

    __slots__ = (
        "_failed",
        "_is_counted",
        "_is_priced",
        "_most",
        "_parent",
        "_same",
        "_seen",
        "_steps",
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
        """How often the model was asked."""
        self._steps = 0  # and those of the runs within this one
        self.ran = 0
        """How many calls were run, those of runs within this one included."""
        self.tokens = 0
        """How many tokens providers counted, there too."""
        self.cost = Decimal(0)
        """How many US dollars are known to be spent, there too."""
        self._is_counted = self._is_priced = True
        most = self.limits.cost
        self._most = None if most is None else dollars(most, "RunLimits.cost")
        self._failed: dict[str, int] = {}  # in how many rounds in a row, by the name of a tool
        self._seen: deque[_Round] = deque(maxlen=_LONGEST_CYCLE)
        # By the length of a cycle: how many rounds in a row were as the one that many before.
        self._same = [0] * (_LONGEST_CYCLE + 1)

    def step(self) -> None:
        """The model is about to be asked."""
        self._add_step()
        self.steps += 1

    def _add_step(self) -> None:
        if self._parent is not None:
            self._parent._add_step()
        most = self.limits.steps
        if most is not None and self._steps >= most:
            _stop(f"the model was asked {most} times in this run", "steps")
        tokens = self.limits.tokens
        if tokens is not None and self.tokens >= tokens:
            _stop(f"this run has used all of its {tokens:,} tokens", "tokens")
        if self._most is not None and self.cost >= self._most:
            _stop(f"this run has spent all of its {self._most} US dollars", "cost")
        self._steps += 1

    def calls(self, count: int) -> None:
        """So many calls are about to be run."""
        if self._parent is not None:
            self._parent.calls(count)
        most = self.limits.calls
        if most is not None and self.ran + count > most:
            done = f"{self.ran} tool calls were run, and {count} more are asked for"
            _stop(f"{done}: {most} may be run in all", "calls")
        self.ran += count

    def used(self, usage: Usage | None, cost: Decimal | None) -> None:
        """An answer is there, and took that; None: not known."""
        if self._parent is not None:
            self._parent.used(usage, cost)
        self._is_counted &= usage is not None
        self._is_priced &= cost is not None
        self.tokens += 0 if usage is None else usage.total
        self.cost += cost or 0

    def check(self) -> None:
        """Raise where what was used is too much. Asked when the answer is safe: it was paid for."""
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
                "RunLimits.tokens can't be kept: the provider does not say how many tokens the"
                " answer took; limit steps or seconds instead"
            )
            raise ConfigError(msg)
        if self.tokens > most:
            _stop(f"this run has used {self.tokens:,} tokens of {most:,}", "tokens")

    def _check_cost(self) -> None:
        if self._most is None:
            return
        if not self._is_priced:
            raise unknown_cost()
        if self.cost > self._most:
            _stop(f"this run has spent {self.cost} US dollars of {self._most}", "cost")

    def ended(self, name: str, retries: int | None, *, has_failed: bool) -> None:
        """A round is over, in which all calls of a tool have failed, or not all of them."""
        self._failed[name] = self._failed.get(name, 0) + 1 if has_failed else 0
        most = self.limits.retries if retries is None else retries
        if most is not None and self._failed[name] > most:
            times = "once" if most == 0 else f"{most + 1} times in a row"
            msg = f"`{name}` failed {times} (retries={most}, of the tool or of RunLimits)"
            raise LimitExceeded(msg)

    def seen(self, call: ToolCall, result: ToolResult) -> None:
        """A round of one call is over."""
        self.round(((call, result),))

    def round(self, pairs: Sequence[tuple[ToolCall, ToolResult]]) -> None:
        """A round of tools is over: its calls and their results, in the order of the calls."""
        most = self.limits.repeats
        if most is None:
            return
        current = tuple([_without_ids(*pair) for pair in pairs])
        for length in range(1, _LONGEST_CYCLE + 1):
            is_same = length <= len(self._seen) and self._seen[-length] == current
            self._same[length] = self._same[length] + 1 if is_same else 0
        self._seen.append(current)
        if any(self._same[length] >= length * (most - 1) for length in range(1, len(self._same))):
            done = f"the same tool calls had the same results {most} times in a row"
            _stop(f"{done}; the model goes in circles", "repeats")


def _without_ids(call: ToolCall, result: ToolResult) -> tuple[ToolCall, ToolResult]:
    """A call and its result as they are compared: each round has ids of its own."""
    return call.replace(id=_ANY), result.replace(call_id=_ANY)


def unknown_cost() -> ConfigError:
    """The error for a limit on the cost where nobody knows the cost."""
    msg = (
        "RunLimits.cost can't be kept: what this model costs is not known here; give the agent its"
        ' price, prices=Prices({"provider:model": Price(input, output)}), or limit tokens instead'
    )
    return ConfigError(msg)


def _stop(what: str, limit: str) -> NoReturn:
    msg = f"{what} (RunLimits.{limit}); {_RAISE}"
    raise LimitExceeded(msg)
