"""A server for SDK clients without a socket; the fronts write all its responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from dragoman.errors import DragomanError, ModelNotFound
from dragoman.model.catalogue import ModelInfo
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
    UsageUpdate,
)
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.requests import Request
from dragoman.model.responses import Choice, Response
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.embeddings import Embedded, ToEmbed
from dragoman.wire.encoded import Encoded
from dragoman.wire.front import ErrorAnswer
from dragoman.wire.prompt_front import PromptFront, prompt_front
from dragoman.wire.service_front import ServiceFront

MODELS = [
    ModelInfo("one", "The One", 8192, 1_700_000_000.0),
    ModelInfo("two", None, None, None),
    ModelInfo("org/three:8b", "Three", 4096, 1_710_000_000.0),
]
TOKENS = 42


class Gateway(NamedTuple):
    """The gateway's answers, and the requests so far."""

    dialect: str
    asked: list[Any]

    def __call__(self, path: str, content: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """The status, the headers and the body for a request."""
        try:
            found = self._answer(path, content)
        except DragomanError as error:
            found = ServiceFront(self.dialect, path=path).error(error)
        if isinstance(found, ErrorAnswer):
            return found.status, found.headers, found.to_bytes()
        if isinstance(found, Encoded):
            return 200, found.headers, found.to_bytes()
        return 200, *found

    def transport(self, httpx: Any) -> Any:
        """The same as a transport for the SDK's HTTP library."""

        def answer(came: Any) -> Any:
            status, headers, content = self(came.url.raw_path.decode(), came.content)
            return httpx.Response(status, headers=headers, content=content)

        return httpx.MockTransport(answer)

    def _answer(self, path: str, content: bytes) -> Any:  # noqa: PLR0911 - one for each service
        place = path.partition("?")[0]
        front = ServiceFront(self.dialect, path=path)
        if "mbed" in place:
            asked = front.decode_embeddings(content)
            self.asked.append(asked)
            return front.embeddings(embedded(asked), asked)
        if place.endswith(("count_tokens", ":countTokens", "/input_tokens")):
            self.asked.append(front.decode_count(content))
            return front.count(TOKENS)
        if place.endswith(("/completions", "/generate")):
            return self._prompted(prompt_front(self.dialect, content))
        if place.endswith("/version"):
            return front.version("1.2.3")
        if place.endswith("/ps"):
            return front.running(MODELS)
        if place.endswith(("/models", "/tags")):
            return front.models(MODELS)
        name = front.decode_model_name(content or None)
        return front.model(model_named(name))

    def _prompted(self, front: PromptFront) -> Any:
        self.asked.extend(front.requests)
        if not front.request.stream:
            return front.responses([*map(answered, front.requests)])
        encoder = front.stream()
        streams = [(number, streamed(each)) for number, each in enumerate(front.requests)]
        sent = [encoder.feed(event, number) for number, stream in streams for event in stream]
        return encoder.headers, b"".join([*sent, encoder.close()])


def model_named(name: str) -> ModelInfo:
    """A model of the list."""
    for model in MODELS:
        if model.id == name:
            return model
    msg = "there is no such model"
    raise ModelNotFound(msg, status=404)


def embedded(asked: ToEmbed) -> Embedded:
    """Different vectors for different inputs."""
    vectors = [(float(place), len(given) / 4, -0.5) for place, given in enumerate(asked.inputs)]
    return Embedded(vectors, Usage(7), None)


def answered(request: Request) -> Response:
    """An answer that repeats the last user text."""
    said = f"re: {request.messages[-1].text}"
    choice = Choice(0, Message.assistant(said), FinishReason.STOP)
    return Response(choices=(choice,), usage=Usage(input=3, output=2))


def streamed(request: Request) -> Iterable[Event]:
    """The same, word by word."""
    yield ResponseStart()
    yield PartStart(0, Text(""))
    for word in answered(request).message.text.partition(" "):
        yield PartDelta(0, word)
    yield PartStop(0)
    yield UsageUpdate(Usage(input=3, output=2))
    yield ChoiceFinish(FinishReason.STOP)
    yield ResponseEnd()
