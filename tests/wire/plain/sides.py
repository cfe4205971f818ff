"""Requests by the generated path and by the steps alone, side by side.

`python -m tests.wire.plain.sides --seconds 600 --seed 1` compares mutated recordings, fixtures and
generated conversations, short and long, in all pairs of dialects, and prints differences.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from typing import Any

import dragoman
from dragoman.model.requests import Request
from dragoman.providers.translation import target_of
from dragoman.wire.lane import switch
from tests.wire import mutations
from tests.wire.lane import requests as made
from tests.wire.lane.spices import spiced, with_odd_messages


def decoded(raw: bytes, source: str) -> Any:
    """The request, or the error."""
    path = made.GEMINI_PATH if source == "gemini" else None
    try:
        return dragoman.dialect(source).decode_request(raw, path=path)
    except dragoman.DragomanError as error:
        return type(error).__name__, str(error)


def encoded(request: Request, target: str) -> tuple[Any, ...]:
    """The body, and everything that is said about it; or the error."""
    try:
        if target in made.DIALECTS:
            found = dragoman.dialect(target).encode_request(request)
        else:
            to = target_of(target, request.model)
            if to.model is not None and to.model != request.model:
                request = request.replace(model=to.model)
            found = dragoman.dialect(to.dialect).encode_request(request, to)
    except dragoman.DragomanError as error:
        return type(error).__name__, str(error)
    context = found.context
    reports = (
        found.losses, found.repairs, found.path, dict(found.headers), dict(context.names),
        dict(context.calls), sorted(context.undos), context.output is None, context.limit,
        context.ends_with_done, context.request,
    )  # fmt: skip
    return found.to_bytes(), reports, type(found.headers)


def parts(request: Request) -> list[Any]:
    """Everything in a request, also what `==` leaves out."""
    with_ids = [
        (each.role, each.parts, each.name, each.extras, each.origin, [_all(p) for p in each.parts])
        for each in request.messages
    ]
    rest = request.replace_trusted(messages=())
    tools = [_all(each) for each in request.tools]
    return [with_ids, rest, rest.extras, [_all(each) for each in rest.system], tools]


def _all(value: Any) -> list[Any]:
    return [getattr(value, name) for name in value.__struct_fields__]


def difference(raw: bytes, source: str, targets: tuple[str, ...]) -> str | None:
    """In which respect the two differ; None if in none."""
    with switch.off():
        general = decoded(raw, source)
    found = decoded(raw, source)
    if isinstance(general, tuple) or isinstance(found, tuple):
        return None if general == found else f"decoding: {found!r}\n     not: {general!r}"
    one, other = parts(found), parts(general)
    if repr(one) != repr(other) or one != other:
        with dragoman.reveal():
            return f"decoded: {first_difference(one, other)}"
    for target in targets:
        with switch.off():
            expected = encoded(general, target)
        given = encoded(found, target)
        if given != expected:
            return f"{target}: {first_difference(given, expected)}"
    return None


def first_difference(one: Any, other: Any, path: str = "$") -> str:
    """The first place where two values differ, and what is there."""
    pairs: Any = ()
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        pairs = [(key, one[key], other[key]) for key in one]
    elif isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        pairs = zip(range(len(one)), one, other, strict=False) if len(one) == len(other) else ()
    for key, left, right in pairs:
        if left != right:
            return first_difference(left, right, f"{path}.{key}")
    if isinstance(one, bytes) and isinstance(other, bytes):
        pairs = enumerate(zip(one, other, strict=False))
        start = max(0, next((at for at, (x, y) in pairs if x != y), 0) - 100)
        one, other = one[start:], other[start:]
    return f"{path}: {one!r:.600}\n not: {other!r:.600}"


def long_body(rng: random.Random, odds: float) -> dict[str, Any]:
    """A conversation that is long enough to have plain stretches, and odd things in it."""
    body = made.made_body(rng, odds)
    messages: list[Any] = []
    pieces = [made.made_body(rng, odds)["messages"] for _ in range(rng.randint(0, 2))]
    for number, piece in enumerate([*pieces, body["messages"]]):
        messages += _renumbered(piece, f"{number}o", rng)
        messages += _stretch(rng, number)
    if rng.random() < 0.3:
        messages.pop()
    return {**body, "messages": messages}


def _renumbered(messages: list[Any], word: str, rng: random.Random) -> list[Any]:
    if rng.random() < 0.1:
        return messages
    text = json.dumps(messages)
    return json.loads(text.replace("call_", f"call_{word}"))  # type: ignore[no-any-return]


def _stretch(rng: random.Random, number: int) -> list[Any]:
    messages: list[Any] = []
    has_turns = rng.random() < 0.6
    for n in range(rng.randint(3, 12)):
        calls = [
            {"id": f"call_{number}_{n}_{k}", "type": "function",
             "function": {"name": rng.choice("fg"), "arguments": rng.choice(('{"x": 1}', "{}"))}}
            for k in range(rng.choice((1, 1, 2)))
        ]  # fmt: skip
        if has_turns or not n:
            messages.append({"role": "user", "content": f"Question {n}"})
        if rng.random() < 0.6 or not has_turns:
            asked: dict[str, Any] = {"role": "assistant", "tool_calls": calls}
            if rng.random() < 0.7:
                asked["content"] = rng.choice((None, "Let me see."))
            messages.append(asked)
            messages += [{"role": "tool", "tool_call_id": c["id"], "content": "R"} for c in calls]
        if has_turns:
            messages.append({"role": "assistant", "content": f"Answer {n}"})
    return messages


def random_case(rng: random.Random, seeds: list[Any]) -> tuple[bytes, str]:
    """A random request and its dialect."""
    if rng.random() < 0.3:
        raw, source, _ = made.random_case(rng, seeds)
        return raw, source
    source = rng.choice(made.DIALECTS)
    body: Any = long_body(rng, rng.choice((0, 0, 0.05)))
    if source != "openai-chat":
        body = made.in_dialect(body, source) or body
    field = dragoman.dialect(source).messages_field
    if rng.random() < 0.4:
        body = spiced(body, source, rng)
    if rng.random() < 0.4 and isinstance(body.get(field), list):
        body = with_odd_messages(body, field, rng)
    if rng.random() < 0.2:
        body = mutations.mutated(body, rng)
    try:
        if rng.random() < 0.2:
            return made.hostile_text(body, rng), source
        return json.dumps(body).encode(), source
    except (TypeError, ValueError, RecursionError, UnicodeError):
        return b"{}", source


def main() -> None:
    """Compare until the time is up."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--source")
    options = parser.parse_args()
    seeds, found, number = made.request_seeds(), Counter[str](), options.seed * 10_000_000
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        number += 1
        rng = random.Random(number)
        raw, source = random_case(rng, seeds)
        if options.source and source != options.source:
            continue
        result = difference(raw, source, (rng.choice(made.TARGETS), rng.choice(made.TARGETS)))
        found["different" if result else "equal"] += 1
        if result and found["different"] <= 3:
            print(f"{number}: {source}\n{raw[:200]!r}\n{result[:6000]}\n")
    print(dict(found))


if __name__ == "__main__":
    main()
