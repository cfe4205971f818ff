"""Several clients at once, whose requests are nearly the same: heads, labels, beginnings.

Whatever one client has left in the caches, another's request is translated as on the general path.
`python -m tests.wire.lane.clients --seconds 600 --seed 1` prints the differences.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import time
from collections import Counter
from contextlib import suppress
from typing import Any

import dragoman
import dragoman.wire.lane.requests as lane
from dragoman.wire.lane.prefixes import forget_conversations, remember_conversations
from tests.wire import mutations
from tests.wire.lane import requests as lanes
from tests.wire.lane.frames import reordered
from tests.wire.lane.spices import spiced

_LABELS = {
    "openai-chat": ("user", "safety_identifier", "prompt_cache_key", "metadata"),
    "openai-responses": ("user", "safety_identifier", "prompt_cache_key", "metadata"),
    "anthropic": ("metadata",),
    "gemini": ("labels",),
    "ollama": ("metadata",),
}
_WORDS = ("alice", "bob", "u1", "m", "f", "Hi", "x" * 64, "x" * 65, "", "a b", "é", "null",
          "dragoman-label-0", "dragoman-label-text", "0" * 64, "lane00000")  # fmt: skip
"""Values of labels and texts alike, so that some occur in several places; some are our samples."""
_ESCAPED = {"a": "\\u0061", "/": "\\/", "0": "\\u0030", "i": "\\u0069", "é": "\\u00E9"}


class Client:
    """A client that sends a conversation again and again, with changes."""

    def __init__(self, dialect: str, rng: random.Random) -> None:
        body = None
        while body is None:
            body = lanes.in_dialect(lanes.made_body(rng, rng.choice((0, 0, 0.03))), dialect)
        if rng.random() < 0.3:
            body = spiced(body, dialect, rng)
        self.dialect, self.rng = dialect, rng
        self.field = dragoman.dialect(dialect).messages_field
        self.turns: Any = body.pop(self.field)
        self.fields: dict[str, Any] = body
        self.restyle()
        self.relabel()

    def restyle(self) -> None:
        """Format the JSON in another way, from now on."""
        rng = self.rng
        self.order = rng.choice((0, 0, 0, rng.randint(1, 9)))
        self.is_last = rng.random() < 0.5
        self.ways: dict[str, Any] = {
            "ensure_ascii": rng.random() < 0.5, "indent": rng.choice((None, None, None, 1)),
            "separators": rng.choice((None, (",", ":"), (" , ", " : "))),
        }  # fmt: skip
        self.escaped = rng.choice(("", "", "", *_ESCAPED))
        self.around = rng.choice((("", ""),) * 9 + (("\n", " "), ("\ufeff", ""), ("", "x")))

    def relabel(self) -> None:
        """Become another user."""
        rng, self.fields = self.rng, dict(self.fields)  # clients may have copied them
        for name in _LABELS[self.dialect]:
            if rng.random() < 0.5:
                continue
            keys = rng.sample(("user_id", "a", "b", "é"), rng.randint(0, 3))
            value: Any = {key: rng.choice(_WORDS) for key in keys}
            if name not in ("metadata", "labels") or rng.random() < 0.1:
                value = rng.choice(_WORDS)
            self.fields[name] = value if rng.random() < 0.95 else mutations.odd(rng)

    def change(self, others: list[Client]) -> None:
        """Change one thing, or take one over from another client."""
        rng, other = self.rng, self.rng.choice(others)
        pick = rng.randrange(8)
        if pick == 0 and isinstance(self.turns, list) and isinstance(other.turns, list):
            self.turns = self.turns + copy.deepcopy(other.turns)[-rng.randint(1, 3) :]
        elif pick == 1 and isinstance(self.turns, list):
            self.turns = self.turns[: rng.randint(1, len(self.turns) or 1)]
        elif pick == 2:
            self.turns = copy.deepcopy(other.turns)
        elif pick == 3:
            self.fields = copy.deepcopy(other.fields)
            self.relabel()
        elif pick == 4:
            fields = mutations.mutated(self.fields, rng)
            self.fields = fields if isinstance(fields, dict) else {}
        elif pick == 5:
            self.turns = mutations.mutated(self.turns, rng)
        elif pick == 6:
            self.restyle()
        else:
            self.turns = _reworded(copy.deepcopy(self.turns), rng)

    def raw(self) -> bytes:
        """The request."""
        turns = {self.field: self.turns}
        body = {**self.fields, **turns} if self.is_last else {**turns, **self.fields}
        try:
            body = reordered(body, self.order) if self.order else body
            text = json.dumps(body, **self.ways)
        except (TypeError, ValueError, RecursionError):
            text = "{}"
        if self.escaped and "\\" not in text:
            text = text.replace(self.escaped, _ESCAPED[self.escaped])
        before, after = self.around
        return (before + text + after).encode("utf-8", "surrogatepass")


def _reworded(value: Any, rng: random.Random) -> Any:
    """The value with some of its texts replaced."""
    if isinstance(value, list):
        return [_reworded(each, rng) for each in value]
    if isinstance(value, dict):
        return {key: _reworded(each, rng) for key, each in value.items()}
    if isinstance(value, str) and value not in _KEPT and rng.random() < 0.2:
        return rng.choice(_WORDS)
    return value


_KEPT = frozenset(("text", "user", "assistant", "tool", "model", "system", "function", "input_text",
                   "output_text", "tool_use", "tool_result", "function_call",
                   "function_call_output", "message"))  # fmt: skip


def difference(rng: random.Random, count: int) -> str | None:
    """The first difference among that many requests of a few clients, if any."""
    lane.HEADS.clear()
    lane.SURROUNDINGS.clear()
    lane.BACKOFF.clear()
    if rng.random() < 0.4:
        remember_conversations(rng.choice((20_000, 10_000_000)))
    try:
        return _difference(rng, count)
    finally:
        forget_conversations()


def _difference(rng: random.Random, count: int) -> str | None:
    source = rng.choice(lanes.DIALECTS)
    targets = rng.sample(lanes.TARGETS, 2)
    repair = rng.random() < 0.9
    clients = [Client(source, rng)]
    clients += [copy.copy(clients[0]) for _ in range(rng.randint(1, 2))]
    for _ in range(count):
        client = rng.choice(clients)
        if rng.random() < 0.6:
            with suppress(RecursionError):  # for a value that nests too deeply to be copied
                client.change(clients)
        raw = client.raw()
        for _ in range(rng.choice((1, 1, 2))):
            target = rng.choice(targets)
            found = lanes.difference(raw, source, target, repair=repair)
            if isinstance(found, str):
                return f"{source} to {target}, repair={repair}\n{raw[:2000]!r}\n{found[:3000]}"
            TOOK["lane" if found.took_lane else "general"] += 1
    return None


TOOK = Counter[str]()
"""How many requests took which path."""


def main() -> None:
    """Compare until the time is up."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    number, end = options.seed * 10_000_000, time.monotonic() + options.seconds
    while time.monotonic() < end:
        number += 1
        rng = random.Random(number)
        lane.LONG = rng.choice((0, 0, 500, 8 * 1024))
        if found := difference(rng, 20):
            print(f"{number}: {found}\n")
    print(dict(TOOK))


if __name__ == "__main__":
    main()
