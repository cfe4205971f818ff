"""A gateway with scripted models and a store of its own, and the page's requests to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from dragoman.gateway.config.settings import GatewayConfig, Place, RouteSettings, ServerSettings
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.events import Event, PartDelta, PartStart, ResponseStart
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.tools import ToolCall
from dragoman.transport.scripted import ScriptedModel
from dragoman.transport.synthetic_answers import PlayedStream
from tests.gateway.running import Serving, running

PAGE = {"x-dragoman-page": "1"}
ECHO = Place(name="echo:", model_url="echo:")
SCRIPTED = Place(name="scripted:", model_url="scripted:")
PLACES: Mapping[str, Place] = {each.name: each for each in (ECHO, SCRIPTED)}


def begun(*pieces: str) -> list[Event]:
    """The events of an answer that has begun."""
    grown = [PartDelta(0, each) for each in pieces]
    return [ResponseStart(model="m"), PartStart(0, Text("")), *grown]


class Hangs:
    """A script step that sends a text and then hangs until it is stopped."""

    def __init__(self, text: str) -> None:
        self.text = text


class PlayedModel(ScriptedModel):
    """A scripted model, some of whose answers hang."""

    def stream(self, request: Any) -> PlayedStream:
        """The next answer."""
        if not self._left or not isinstance(self._left[0], Hangs):
            return super().stream(request)
        step = self._left.popleft()

        async def source(_heard: MessageAccumulator) -> AsyncIterator[Event]:
            for event in begun(step.text):
                yield event
            await asyncio.Event().wait()

        self.requests.append(request)
        return PlayedStream(source)


class TestPage:
    """A client that behaves like the page's script."""

    __test__ = False

    def __init__(self, serving: Serving) -> None:
        self.gateway = serving.gateway
        self.url = serving.url
        self._client = httpx.Client(base_url=f"{serving.url}/ui/api/", headers=PAGE, timeout=20)
        self.stranger = httpx.Client(base_url=f"{serving.url}/ui/api/", timeout=20)
        """A client without the page's headers."""

    def close(self) -> None:
        """Leave."""
        self._client.close()
        self.stranger.close()

    def script(self, *steps: Any) -> PlayedModel:
        """Scripts the responses of the model `scripted:`."""
        back = self.gateway.upstream(self.gateway.config.places["scripted:"])
        model = PlayedModel(steps)
        back._model = model  # a place's script is in a file otherwise
        return model

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """One request, as it is answered."""
        return self._client.request(method, path, **options)

    def read(self, path: str, **query: Any) -> Any:
        """Returns the JSON at a path."""
        answer = self.ask("GET", path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def write(self, method: str, path: str, body: Any = None) -> Any:
        """Sends a change and returns the JSON response."""
        answer = self.ask(method, path, json={} if body is None else body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    @contextmanager
    def talking(self, text: str = "", **body: Any) -> Generator[Iterator[dict[str, Any]]]:
        """The events of an answer, as they come; leaving the block closes the connection."""
        wanted = {"model": "scripted:", "text": text, **body}
        with self._client.stream("POST", "talk", json=wanted) as answer:
            if answer.status_code != 200:
                answer.read()
            assert answer.status_code == 200, answer.text
            yield _events(answer)

    @contextmanager
    def following(self, run: str) -> Generator[Iterator[dict[str, Any]]]:
        """The events of a run in progress, from the first one."""
        with self._client.stream("GET", f"talk/{run}") as answer:
            assert answer.status_code == 200
            yield _events(answer)

    def talk(self, text: str = "", **body: Any) -> list[dict[str, Any]]:
        """All events of an answer."""
        with self.talking(text, **body) as events:
            return list(events)

    def texts(self, id: str, **query: Any) -> list[str]:
        """Returns the texts of a conversation."""
        found = self.read(f"conversations/{id}", **query)["messages"]
        return ["".join(part.get("text", "") for part in each["parts"]) for each in found]


def _events(answer: httpx.Response) -> Iterator[dict[str, Any]]:
    for line in answer.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line[6:])


@contextmanager
def page_at(
    store: str | None, *, places: Mapping[str, Place] = PLACES,
    routes: tuple[RouteSettings, ...] = (), **server: Any,
) -> Generator[TestPage]:  # fmt: skip
    """A gateway with the page, its conversations in a store."""
    settings = ServerSettings(history=store, **server)
    config = GatewayConfig(places=places, routes=routes, server=settings)
    with running(config) as serving:
        page = TestPage(serving)
        try:
            yield page
        finally:
            page.close()


def url_of(kind: str, folder: Path) -> str:
    """A store of a kind, in a folder."""
    return f"sqlite:///{folder}/chats.db" if kind == "sqlite" else f"file://{folder}/chats"


def calls(*given: tuple[str, dict[str, Any]]) -> Message:
    """An answer that calls tools."""
    made = [ToolCall.create(f"call_{n}", *each) for n, each in enumerate(given, 1)]
    return Message.assistant(*made)


def of_type(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The events of one type."""
    return [event for event in events if event["type"] == kind]
