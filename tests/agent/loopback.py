"""Providers on loopback that speak their dialects and validate every request.

Each applies the rules of its dialect and the types of its vendor's SDK, and rejects sealed state of
other providers. OpenAI's Responses stores its answers and accepts their ids.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import dragoman
from dragoman.model.requests import Request
from dragoman.transport.client import Client
from dragoman.transport.protocol import Timeouts
from dragoman.transport.retries import Retries
from tests.agent import spoken
from tests.agent.frames import frames, kind
from tests.agent.spoken import Body, Said, Spoken, seal
from tests.environment import PATIENCE
from tests.transport.servers import Seen, Step, plain, serving, streamed
from tests.wire.gemini.sdk import read_request
from tests.wire.ollama.test_sdk import accept
from tests.wire.openai_responses.test_sdk_types import _check_request
from tests.wire.test_matrix_random import _accepted


@dataclass(frozen=True)
class Place:
    """A provider, one of its models, and its dialect."""

    dialect: str
    model: str
    answer: Spoken
    takes_images: bool = True


PLACES: Mapping[str, Place] = {
    "anthropic": Place("anthropic", "anthropic:claude-sonnet-4-5", spoken.anthropic),
    "gemini": Place("gemini", "google:gemini-3-pro-preview", spoken.gemini),
    "ollama": Place("ollama", "ollama:qwen3", spoken.ollama),
    "openai-chat": Place(
        "openai-chat", "openrouter:anthropic/claude-sonnet-4.5", spoken.openrouter
    ),
    "openai-responses": Place("openai-responses", "openai:gpt-5", spoken.responses),
    # further hosts of one dialect, each with its own quirks
    "deepseek": Place("openai-chat", "deepseek:deepseek-reasoner", spoken.deepseek, False),
    "groq": Place("openai-chat", "groq:openai/gpt-oss-120b", spoken.groq),
    "mistral": Place("openai-chat", "mistral:mistral-large-latest", spoken.mistral),
    "openai": Place("openai-chat", "openai:gpt-4.1", spoken.openai),
    "older claude": Place("anthropic", "anthropic:claude-opus-4-6", spoken.anthropic),
    "older gemini": Place("gemini", "google:gemini-2.5-flash", spoken.gemini),
}
DIALECTS = ("anthropic", "gemini", "ollama", "openai-chat", "openai-responses")


def judged(dialect: str, body: Body) -> None:
    """Raise if the types of the vendor's SDK reject a request."""
    if dialect == "openai-responses":
        _check_request(body)
    elif dialect == "gemini":
        read_request(body)
    elif dialect == "ollama":
        accept(body)
    else:
        _accepted(dialect, _without_thoughts(body) if dialect == "openai-chat" else body)


def _without_thoughts(body: Body) -> Body:
    """The body without Mistral's thinking parts, which OpenAI's types don't have."""
    messages = [
        {**message, "content": [part for part in message["content"] if part["type"] != "thinking"]}
        if isinstance(message.get("content"), list)
        else message
        for message in body["messages"]
    ]
    return {**body, "messages": messages}


def client(model: str, url: str, dialect: str | None = None, **settings: Any) -> Client:
    """A client of a loopback server, without retries."""
    settings.setdefault("timeouts", Timeouts(first_byte=PATIENCE, between_chunks=PATIENCE))
    settings.setdefault("retries", Retries(attempts=1))
    return Client(model, dialect=dialect, base_url=url, key="sk-test", **settings)


@dataclass
class World:
    """All providers, and the current turn of each."""

    clients: dict[str, Client] = field(default_factory=dict)
    turn: int = 0
    """The turn that is being talked; the test says so."""
    seals: dict[str, list[str]] = field(default_factory=dict)
    """What each place has sealed so far, in its order."""
    said: list[str] = field(default_factory=list)
    """What every request must have in it from now on."""
    pixels: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """What was wrong with requests."""
    asked: list[tuple[str, Body]] = field(default_factory=list)
    """Every request, with what its place had kept put back in front."""
    raw: list[Body] = field(default_factory=list)
    """Every request, just as it came."""
    refusal: Body | None = None
    """What everything is answered with from now on."""
    keeps_nothing: bool = False
    """Whether OpenAI keeps neither answers nor items, and seals nothing it was not asked to."""
    kept: dict[str, list[Body]] = field(default_factory=dict)
    """The items of each response that OpenAI has kept."""
    linked: int = 0
    """How many requests went on from one of them."""

    def begin(self, turn: int) -> Said:
        """A turn begins with a question and an image."""
        self.turn = turn
        said = Said(turn)
        self.said.append(said.question)
        self.pixels.append(said.pixel)
        return said

    def answer(self, name: str, seen: Seen) -> list[Step]:
        """A provider's answer; problems of the request are recorded."""
        self.raw.append(seen.json)
        if self.refusal is not None:
            return plain(self.refusal, 400)
        previous = seen.json.get("previous_response_id")
        if previous is not None and previous not in self.kept:
            return plain(lost(previous), 400)
        if self.keeps_nothing and any(map(_is_bare_reasoning, seen.json["input"])):
            return plain(NOT_KEPT, 404)
        place, body = PLACES[name], self._whole(seen.json)
        self.asked.append((name, body))
        speaker = dragoman.dialect(place.dialect)
        request = speaker.decode_request(body, path=seen.path)
        try:
            self._inspect(name, seen, body)
        except Exception as error:  # noqa: BLE001 - a test shows it, whatever it is
            self.faults.append(f"{name}, turn {self.turn}: {error}")
        is_last = bool(request.messages[-1].tool_results)
        found = place.answer(name, self.turn, place.model.partition(":")[2], is_last=is_last)
        if self.keeps_nothing:
            found["output"][0].pop("encrypted_content")
        self._note(name, found, body, is_last=is_last)
        if seen.json.get("stream") or ":stream" in seen.path:
            pieces = frames(place.dialect, found)
            return streamed(*pieces, kind=kind(place.dialect))
        return plain(found)

    def _whole(self, body: Body) -> Body:
        """The request with the stored messages before the new ones."""
        previous = body.get("previous_response_id")
        if previous is None:
            return body
        self.linked += 1
        given = {key: value for key, value in body.items() if key != "previous_response_id"}
        return {**given, "input": [*self.kept[previous], *body["input"]]}

    def _inspect(self, name: str, seen: Seen, body: Body) -> None:
        place = PLACES[name]
        target = self.clients[name].target
        judged(place.dialect, seen.json)
        found = dragoman.dialect(place.dialect).check(body, seen.path, target=target)
        self.faults += [f"{name}, turn {self.turn}: {each.rule} {each.path} {each.message}"
                        for each in found if each.severity == "error"]  # fmt: skip
        text = "\n".join(strings(body))
        wanted = [*self.said, *(self.pixels if place.takes_images else ())]
        self._fault(name, "is not told", [each for each in wanted if each not in text])
        theirs = {name, "openai-chat"} if place.dialect == "anthropic" else {name}  # Claude's, too
        others = [one for other, made in self.seals.items() if other not in theirs for one in made]
        self._fault(name, "is shown another's", [each for each in others if each in text])
        own = self.seals.get(name, [])
        arrived = sorted((text.find(each), each) for each in own if each in text)
        if [each for _, each in arrived] != own:
            self._fault(name, "does not get back its own", [f"{len(arrived)} of {len(own)}"])

    def _fault(self, name: str, what: str, which: Sequence[str]) -> None:
        if which:
            self.faults.append(f"{name}, turn {self.turn}: {what}: {', '.join(which)}")

    def _note(self, name: str, found: Body, body: Body, *, is_last: bool) -> None:
        text = "\n".join(strings(found))
        made = [each for number in range(3) if (each := seal(name, self.turn, number)) in text]
        self.seals.setdefault(name, []).extend(made)
        said = Said(self.turn)
        self.said += [said.answer] if is_last else said.called
        if found.get("object") == "response" and not self.keeps_nothing:
            self.kept[found["id"]] = [*body["input"], *found["output"]]


def lost(response_id: str) -> Body:
    """OpenAI's error for an answer that it hasn't stored, or no longer has."""
    return {
        "error": {
            "message": f"Previous response with id '{response_id}' not found.",
            "type": "invalid_request_error",
            "param": "previous_response_id",
            "code": "previous_response_not_found",
        }
    }


NOT_KEPT = {
    "error": {
        "message": "Item with id 'rs_0a' not found. Items are not persisted when `store` is set to "
        "false. Try again with `store` set to true, or remove this item from your input.",
        "type": "invalid_request_error",
        "param": "input",
        "code": None,
    }
}


def _is_bare_reasoning(item: Body) -> bool:
    return item.get("type") == "reasoning" and not item.get("encrypted_content")


def strings(value: Any) -> Iterator[str]:
    """All strings of a body, including those in arguments."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from strings(inner)


@asynccontextmanager
async def world(*names: str) -> AsyncGenerator[World]:
    """These providers, each on its own port."""
    made = World()
    async with AsyncExitStack() as stack:
        for name in names or DIALECTS:
            place = PLACES[name]

            def script(seen: Seen, name: str = name) -> list[Step]:
                return made.answer(name, seen)

            server = await stack.enter_async_context(serving(script))
            asking = client(place.model, server.url, place.dialect)
            made.clients[name] = await stack.enter_async_context(asking)
        yield made


def read(dialect: str, body: Body, path: str | None = None) -> Request:
    """A request as its receiver decodes it."""
    return dragoman.dialect(dialect).decode_request(body, path=path)
