"""Requests through the lane and the general path, side by side.

`python -m tests.wire.lane.requests --seconds 600 --seed 1` compares mutated recordings, fixtures
and generated conversations in all pairs of dialects, and prints differences.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

import dragoman
import dragoman.wire.lane.requests as lane
from dragoman.providers.translation import target_of
from dragoman.wire.encoded import Encoded
from dragoman.wire.lane import switch
from tests.wire import mutations
from tests.wire.lane.media import attached
from tests.wire.lane.spices import spiced, with_odd_messages
from tests.wire.recorded import normal

DIALECTS = ("anthropic", "gemini", "ollama", "openai-chat", "openai-responses")
HOSTS = (
    "openai:gpt-5.1", "openai:gpt-4o", "anthropic:claude-sonnet-4-5", "anthropic:claude-opus-4-8",
    "google:gemini-2.5-pro", "google:gemini-3-pro", "groq:llama-3.3-70b-versatile",
    "mistral:mistral-large-latest", "deepseek:deepseek-chat", "ollama:qwen3", "xai:grok-4",
    "perplexity:sonar",
)  # fmt: skip
TARGETS = (*DIALECTS, *HOSTS)
GEMINI_PATH = "/v1beta/models/gemini-2.5-flash:generateContent"


_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Outcome(NamedTuple):
    """The outcome of a translation."""

    body: Any
    reports: Any
    took_lane: bool


def translated(raw: bytes, source: str, target: str, *, repair: bool = True) -> Encoded:
    """The translation."""
    path = GEMINI_PATH if source == "gemini" else None
    return dragoman.translate(raw, source=source, target=target, path=path, repair=repair)


def outcome(raw: bytes, source: str, target: str, *, repair: bool = True) -> Outcome:
    """The translation, or the error."""
    try:
        made = translated(raw, source, target, repair=repair)
    except dragoman.DragomanError as error:
        return Outcome(type(error).__name__, str(error), took_lane=False)
    context = made.context
    reports = (
        made.losses, made.repairs, made.path, dict(made.headers), dict(context.names),
        dict(context.calls), sorted(context.undos), context.output is None, context.limit,
        context.ends_with_done, context.request, type(made.headers),
    )  # fmt: skip
    took_lane = made._raw is not None
    return Outcome(made.to_bytes(), reports, took_lane)


def took_lane(raw: bytes, source: str = "openai-chat", target: str = "anthropic") -> bool:
    """Whether a request took the lane; fails if the general path gives something else."""
    found = difference(raw, source, target)
    assert not isinstance(found, str), found
    return found.took_lane


def difference(raw: bytes, source: str, target: str, *, repair: bool = True) -> Outcome | str:
    """The outcome, or the respect in which lane and general path differ."""
    with switch.off():
        general = outcome(raw, source, target, repair=repair)
    found = outcome(raw, source, target, repair=repair)
    if not found.took_lane:
        return found if found[:2] == general[:2] else "a request that left the lane is another"
    if general.body == "WireError" and source == target and not repair:
        is_unseen = "out of range" in general.reports or "nested deeper" in general.reports
        return found if is_unseen else "what the general path refuses"
    if found.reports != general.reports:
        return f"reports: {found.reports}\n     not: {general.reports}"
    # Within a dialect, bodies are passed on unchanged, not in the normal form.
    stays = _dialect_of(target, found.body) == source
    if found.body == general.body or (stays and _is_same(found.body, general.body)):
        return found
    return f"body: {found.body!r}\n not: {general.body!r}"


def _is_same(some: Any, other: Any) -> bool:
    return bool(normal(json.loads(some)) == normal(json.loads(other)))


def _dialect_of(target: str, body: bytes) -> str:
    """The dialect of a target, given the body that is sent to it."""
    if target in DIALECTS:
        return target
    return target_of(target, json.loads(body).get("model")).dialect


# --- plain and nearly plain conversations

_TEXTS = ("Hi", "é✓😀", '"quoted"\\ \n', " leading", "trailing ", "x" * 300, "{}", "null", "0")
_ARGUMENTS = (
    '{"x": 1.0, "y": [1, 2, {}]}',
    "{}",
    '{"q":"\\u00e9"}',
    '{ "n": 1e2 }',
    '{"a":1,"a":2}',
)
_IDS = ("toolu_{:018}", "functions.f:{}", "abc{:06}", "x{}", "{:070}", "{:064}.", "c.{}", "a b{}")
"""Of all calls of a conversation: many targets refuse some of these."""
_ODD_TEXTS = ("", " ", "\n\t", "\u2028", "\x00")
_ODD_ARGUMENTS = (
    "",
    " ",
    "[]",
    "5",
    '"x"',
    "{",
    '{"x": 1e400}',
    '{"x": NaN}',
    '{"\\ud800": 1}',
    "null",
)


class _Maker:
    """A conversation in Chat's form, from which other forms are translated."""

    def __init__(self, rng: random.Random, odds: float) -> None:
        self.rng, self.odds, self.count = rng, odds, 0
        self.call_id = "call_{}" if rng.random() < 0.6 else rng.choice(_IDS)

    def some(self, plain: tuple[str, ...], odd: tuple[str, ...]) -> str:
        return self.rng.choice(odd if self.rng.random() < self.odds else plain)

    def text(self) -> str:
        return self.some(_TEXTS, _ODD_TEXTS)

    def content(self, *, pictures: bool = False) -> Any:
        if self.rng.random() < 0.6:
            return self.text()
        parts: list[Any] = [
            {"type": "text", "text": self.text()} for _ in range(self.rng.randint(1, 3))
        ]
        if pictures and self.rng.random() < 0.3:
            place = self.rng.randint(0, len(parts))
            parts[place : place + self.rng.randint(0, 1)] = [attached("openai-chat", self.rng)]
        if self.rng.random() < 0.1:
            parts[0]["cache_control"] = {"type": "ephemeral"}
        return parts

    def round(self) -> list[Any]:
        rng, calls = self.rng, []
        for _ in range(rng.choice((1, 1, 2, 3))):
            self.count += 1
            name = (
                self.call_id.format(self.count)
                if rng.random() > self.odds
                else rng.choice(("", "call_1", "x" * 70, "a.b:1"))
            )
            function = {
                "name": self.some(("f", "g"), ("h.i", "", "undeclared")),
                "arguments": self.some(_ARGUMENTS, _ODD_ARGUMENTS),
            }
            calls.append({"id": name, "type": "function", "function": function})
        answer: dict[str, Any] = {"role": "assistant", "tool_calls": calls}
        if rng.random() < 0.5:
            answer = {
                "role": "assistant",
                "content": rng.choice((None, self.text(), "")),
                "tool_calls": calls,
            }
        if rng.random() < 0.15:
            answer["reasoning_content"] = self.text()
        results = [
            {"role": "tool", "tool_call_id": c["id"], "content": self.content()} for c in calls
        ]
        if rng.random() < self.odds:
            rng.shuffle(results)
        if rng.random() < self.odds and results:
            results.pop()
        for result in results:
            if rng.random() < 0.1:
                result["name"] = "f"
        return [answer, *results]

    def messages(self) -> list[Any]:
        rng, messages = self.rng, []
        roles = [role for role in ("system", "developer") if rng.random() < 0.4]
        messages += [{"role": role, "content": self.content()} for role in roles]
        for _ in range(rng.randint(1, 5)):
            if rng.random() < 0.9:
                messages.append({"role": "user", "content": self.content(pictures=True)})
            for _ in range(rng.choice((0, 0, 1, 2))):
                messages += self.round()
            if rng.random() < 0.6:
                answer = {"role": "assistant", "content": self.content()}
                extra: dict[str, Any] = rng.choice(
                    (
                        {},
                        {},
                        {"refusal": None},
                        {"annotations": []},
                        {"prefix": False},
                        {"reasoning_content": "hm"},
                    )
                )
                messages.append({**answer, **extra})
        if rng.random() < 0.8:
            messages.append({"role": "user", "content": self.content()})
        if rng.random() < self.odds:
            messages.insert(
                rng.randint(0, len(messages)),
                {"role": rng.choice(("system", "tool", "user", "x")), "content": "?"},
            )
        return messages


_SCHEMA = {"type": "object", "properties": {"x": {"type": "number", "minimum": 1}, "y": {}}}
_FORMAT = {"type": "json_schema", "json_schema": {"name": "n", "schema": _SCHEMA, "strict": True}}
_SETTINGS: tuple[dict[str, Any], ...] = (
    {"temperature": 0.5}, {"max_tokens": 100}, {"stream": True}, {"user": "u"}, {"seed": 1},
    {"reasoning_effort": "high"}, {"tool_choice": "required"}, {"x_unknown": [1]},
    {"response_format": {"type": "json_object"}}, {"response_format": _FORMAT},
)  # fmt: skip


def made_body(rng: random.Random, odds: float = 0.05) -> dict[str, Any]:
    """The body of a plain, or nearly plain, Chat request."""
    schema = {"type": "object", "properties": {"x": {"type": "number"}}}
    body: dict[str, Any] = {
        "model": rng.choice(("gpt-5.1", "m")),
        "messages": _Maker(rng, odds).messages(),
    }
    names = rng.choice((("f", "g"), ("f", "g"), ("f",), ()))
    if names:
        body["tools"] = [
            {"type": "function", "function": {"name": n, "parameters": schema}} for n in names
        ]
    for setting in _SETTINGS:
        if rng.random() < 0.1:
            body |= setting
    return body


def in_dialect(body: dict[str, Any], dialect: str) -> dict[str, Any] | None:
    """The same request in another dialect."""
    try:
        with switch.off():
            made = dragoman.translate(body, source="openai-chat", target=dialect)
            body_there: dict[str, Any] = json.loads(made.to_bytes())
            return body_there
    except dragoman.DragomanError:
        return None


def hostile_text(body: Any, rng: random.Random) -> bytes:
    """The body as JSON text, with something that only text can contain."""
    text = json.dumps(body, ensure_ascii=rng.random() < 0.5, indent=rng.choice((None, None, 1)))
    if rng.random() < 0.8:
        return text.encode("utf-8", "surrogatepass")
    place = rng.randint(0, len(text))
    piece = rng.choice(
        (
            '"\\ud800"',
            "1e400",
            ',"messages":[]',
            '"model":"x",',
            "\\u0000",
            "}",
            "[" * 50,
            "é",
            "-0",
            "\ufeff",
            "1" * 400,
            '"role":"user",',
            '"content":"twice",',
        )
    )
    return (text[:place] + piece + text[place:]).encode("utf-8", "surrogatepass")


def random_case(rng: random.Random, seeds: list[mutations.Seed]) -> tuple[bytes, str, str]:
    """A random request, its dialect, and a target."""
    if seeds and rng.random() < 0.3:
        seed = rng.choice(seeds)
        source, body = seed.dialect, seed.value
        if rng.random() < 0.7:
            body = mutations.mutated(body, rng)
    else:
        source = rng.choice(DIALECTS)
        body = in_dialect(made_body(rng, rng.choice((0, 0, 0.05))), source)
        if body is not None and rng.random() < 0.6:
            body = spiced(body, source, rng)
        if body is not None and rng.random() < 0.3:
            body = with_odd_messages(body, dragoman.dialect(source).messages_field, rng)
        if body is not None and rng.random() < 0.3:
            body = mutations.mutated(body, rng)
    try:
        raw = hostile_text(body, rng)
    except (TypeError, ValueError, RecursionError, UnicodeError):
        raw = b"{}"
    return raw, source, rng.choice(TARGETS)


def spliced(bodies: list[bytes], source: str, rng: random.Random) -> Iterator[bytes]:
    """The bodies, and the first one with other bytes in place of its conversation."""
    field = dragoman.dialect(source).messages_field
    try:
        found = [bytes(_split(raw)[field]) for raw in bodies]
    except (msgspec.MsgspecError, KeyError):
        return
    yield from bodies
    said, other = found[0], found[-1]
    cut = other[: rng.randrange(len(other) + 1)]
    further = b',"%s":' % rng.choice((field, "odd")).encode()
    between = (other, said, other + said, other + b" ", b"\n" + other, b"", b'"Hi"', cut,
               cut + said, other + further + said)  # fmt: skip
    for each in rng.sample(between, 4):
        yield bodies[0].replace(said, each, 1)


def request_seeds() -> list[mutations.Seed]:
    """The seeds for mutations."""
    return [
        seed for seed in mutations.seeds() if seed.kind == "request" and seed.dialect in DIALECTS
    ]


def main() -> None:
    """Compare until the time is up."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    lane.LONG = 0
    seeds, found, number = request_seeds(), Counter[str](), options.seed * 10_000_000
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        number += 1
        rng = random.Random(number)
        raw, source, target = random_case(rng, seeds)
        repair = rng.random() < 0.9
        result = difference(raw, source, target, repair=repair)
        for again in spliced([raw, random_case(rng, seeds)[0]], source, rng):
            if not isinstance(result, str) and rng.random() < 0.5:
                raw, result = again, difference(again, source, target, repair=repair)
        if isinstance(result, str):
            found["different"] += 1
            if found["different"] <= 5:
                print(f"{number}: {source} to {target}, repair={repair}")
                print(f"{raw[:1500]!r}\n{result[:3000]}\n")
        else:
            found["lane" if result.took_lane else "general"] += 1
    print(dict(found))


if __name__ == "__main__":
    main()
