"""Matches untrusted regular expressions in linear time.

A JSON Schema may come from anywhere, and Python's `re` can take exponential time on a short text:
`(a+)+$` on "aaaa…!". Here a pattern is compiled to an automaton whose states are followed in
parallel, without backtracking. Patterns that need more (backreferences, lookaround, word
boundaries) are not decided: `search` returns `None`. Steps are counted against a budget.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

from dragoman.model.validation.budget import Budget

MAX_STATES = 5_000
MAX_PATTERN = 2_000
_KNOWN = 2_000

_ATOM = re.compile(
    r"""
    \\x[0-9a-fA-F]{2} | \\u[0-9a-fA-F]{4} | \\[^0-9bBAZzpPkKGQEcxuN]  # escapes of one character
    | \[\^?\]?(?:\\.|[^\]\\])*\]                                      # a class
    | [^\\[\](){}|*+?^$]                                              # a literal, or the dot
    | [\]}]
    """,
    re.VERBOSE | re.DOTALL,
)
_REPEAT = re.compile(r"(?:([*+?])|\{(\d+)(,(\d*))?\})\??")
_GROUP = re.compile(r"\((?:\?:|\?P?<(?![=!])\w+>)?(?!\?)")


class _UnsupportedError(Exception):
    pass


class _State(NamedTuple):
    """A state: its targets are reached over a character that matches the atom, or freely."""

    atom: re.Pattern[str] | None
    assertion: str
    targets: list[int]


def search(pattern: str, text: str, budget: Budget | None = None) -> bool | None:
    """Whether the pattern matches in the text; `None` if that can't be decided.

    >>> search("^(a+)+$", "a" * 1000 + "!")
    False
    """
    automaton, _ = compiled(pattern)
    return None if automaton is None else automaton.search(text, budget or Budget())


@lru_cache(maxsize=256)
def compiled(pattern: str) -> tuple[Automaton | None, int]:
    """The automaton, or `None` if the pattern is not regular or too long; and the steps it took."""
    if len(pattern) > MAX_PATTERN:
        return None, 1
    parser = _Parser(pattern)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # FutureWarnings about character classes
            re.compile(pattern)  # checks the syntax
            automaton = parser.automaton()
    except (_UnsupportedError, re.error, RecursionError, OverflowError, ValueError):
        automaton = None
    return automaton, len(pattern) + parser.size


class Automaton:
    """A Thompson automaton: state 0 is the start, state 1 the end."""

    def __init__(self, states: list[_State]) -> None:
        self._states = states
        self._known: dict[tuple[frozenset[int], str], frozenset[int]] = {}
        self._anew = self._reach({0}, Budget())  # a match may start anywhere

    def search(self, text: str, budget: Budget) -> bool:
        """Whether the pattern matches in the text."""
        budget.spend(len(text) // 4)
        current = self._reach({0}, budget, "^")
        for character in text:
            if 1 in current:
                return True
            current = self._after(current, character, budget)
        return 1 in current or 1 in self._reach(current, budget, "$" if text else "^$")

    def _after(self, current: frozenset[int], character: str, budget: Budget) -> frozenset[int]:
        known = self._known.get((current, character))
        if known is None:
            if len(self._known) > _KNOWN:
                self._known.clear()
            taken = self._taken(current, character, budget)
            known = self._reach(taken, budget) | self._anew
            self._known[current, character] = known
        return known

    def _taken(self, current: Collection[int], character: str, budget: Budget) -> set[int]:
        budget.spend(len(current))
        found: set[int] = set()
        for number in current:
            atom = self._states[number].atom
            if atom is not None and atom.fullmatch(character):
                found.update(self._states[number].targets)
        return found

    def _reach(self, start: Collection[int], budget: Budget, holds: str = "") -> frozenset[int]:
        """All states reachable without a character, given the assertions (`^`, `$`) that hold."""
        found, waiting = set(start), list(start)
        while waiting:
            state = self._states[waiting.pop()]
            if state.atom is None and state.assertion in holds:
                new = set(state.targets) - found
                found |= new
                waiting.extend(new)
        budget.spend(len(found))
        return frozenset(found)


class _Parser:
    """A recursive descent parser; each method appends states and returns the first and last."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._states: list[_State] = []

    @property
    def size(self) -> int:
        """The number of states so far."""
        return len(self._states)

    def automaton(self) -> Automaton:
        start, end = self._state(), self._state()
        first, last = self._either()
        if self._at < len(self._pattern):
            raise _UnsupportedError
        self._join(start, first)
        self._join(last, end)
        return Automaton(self._states)

    def _state(self, atom: re.Pattern[str] | None = None, assertion: str = "") -> int:
        if len(self._states) >= MAX_STATES:
            raise _UnsupportedError
        self._states.append(_State(atom, assertion, []))
        return len(self._states) - 1

    def _join(self, source: int, target: int) -> None:
        self._states[source].targets.append(target)

    def _next(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _either(self) -> tuple[int, int]:
        first, last = self._state(), self._state()
        while True:
            begin, end = self._sequence()
            self._join(first, begin)
            self._join(end, last)
            if self._next() != "|":
                return first, last
            self._at += 1

    def _sequence(self) -> tuple[int, int]:
        first = last = self._state()
        while self._next() not in {"", "|", ")"}:
            begin, end = self._repeated()
            self._join(last, begin)
            last = end
        return first, last

    def _repeated(self) -> tuple[int, int]:
        begins_at = self._at
        piece = self._piece()
        found = _REPEAT.match(self._pattern, self._at)
        if found is None:
            return piece
        least, most = _times(found)
        first = last = self._state()
        for number in range(max(least, 1) if most is None else most):
            begin, end = piece if number == 0 else self._piece_at(begins_at)
            after = self._state()
            self._join(last, begin)
            self._join(end, after)
            if number >= least:
                self._join(last, after)
            if most is None and number >= least - 1:
                self._join(after, begin)
            last = after
        self._at = found.end()
        return first, last

    def _piece_at(self, at: int) -> tuple[int, int]:
        self._at = at  # parse it again: each copy needs its own states
        return self._piece()

    def _piece(self) -> tuple[int, int]:
        if self._next() in {"^", "$"}:
            assertion = self._state(assertion=self._next())
            self._at += 1
            end = self._state()
            self._join(assertion, end)
            return assertion, end
        group = _GROUP.match(self._pattern, self._at)
        if group:
            self._at = group.end()
            inner = self._either()
            self._at += 1  # the closing bracket; re.compile has checked that it is there
            return inner
        return self._atom()

    def _atom(self) -> tuple[int, int]:
        found = _ATOM.match(self._pattern, self._at)
        if found is None:
            raise _UnsupportedError
        self._at = found.end()
        taker = self._state(re.compile(found[0]))
        end = self._state()
        self._join(taker, end)
        return taker, end


def _times(found: re.Match[str]) -> tuple[int, int | None]:
    if found[1]:
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[found[1]]
    least = int(found[2])
    if found[3] is None:
        return least, least
    return least, int(found[4]) if found[4] else None
