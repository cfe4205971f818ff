"""Responses for clients that send one or more prompts instead of a conversation.

A `PromptFront` has one canonical request per prompt, and encodes their responses as one: as a
whole, or as a stream with interleaved choices.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import reduce
from importlib import import_module
from operator import add

from dragoman.errors import InvalidInputError, InvalidRequest
from dragoman.model.events import Event, ResponseEnd, UsageUpdate
from dragoman.model.requests import Request
from dragoman.model.responses import Choice, Response
from dragoman.model.usage import Usage
from dragoman.wire.dialect import Body, Dialect, dialect
from dragoman.wire.encoded import Encoded
from dragoman.wire.front import Front, FrontEncoder
from dragoman.wire.losses import Loss
from dragoman.wire.streams import StreamEncoder

_TOO_MANY = "the response has more choices than were requested"


class PromptFront(Front):
    """Encodes the response to one client's prompts; `requests` has one request per prompt."""

    def __init__(
        self,
        name: str | Dialect,
        requests: Sequence[Request],
        *,
        path: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """For the requests made from the prompts; all have the same settings."""
        self.requests = tuple(requests)
        super().__init__(name, requests[0], path=path, clock=clock)

    @property
    def choices(self) -> int:
        """The number of choices per prompt."""
        return self.request.sampling.choices or 1

    def responses(self, responses: Sequence[Response]) -> Encoded:
        """The complete body for the responses to all `requests`, in order."""
        if len(responses) != len(self.requests):
            msg = f"expected {len(self.requests)} responses, one per prompt, got {len(responses)}"
            raise InvalidInputError(msg)
        if len(responses) == 1:
            return self.response(responses[0])
        encoded = self.response(self._joined(responses))
        lost = [
            Loss(f"responses[{number}].choices[{choice.index}]", _TOO_MANY)
            for number, response in enumerate(responses)
            for choice in response.choices
            if choice.index >= self.choices
        ]
        encoded.losses += tuple(lost)
        return encoded

    def _joined(self, responses: Sequence[Response]) -> Response:
        """One response with the choices of all."""
        choices: list[Choice] = []
        for number, response in enumerate(responses):
            first = number * self.choices
            choices += [
                choice.replace(index=first + choice.index)
                for choice in response.choices
                if 0 <= choice.index < self.choices
            ]
        usages = [each.usage for each in responses if each.usage is not None]
        usage = reduce(add, usages) if usages else None
        return responses[0].replace(choices=tuple(choices), usage=usage)

    def stream(self) -> PromptEncoder:
        """An encoder that writes all responses as one stream."""
        make = getattr(self.dialect, "front_encoder", None)
        encoder = self.dialect.stream_encoder() if make is None else make(self)
        return PromptEncoder(self, encoder)


class PromptEncoder(FrontEncoder):
    """Merges the streams of several prompts into one; `feed` takes the number of the prompt."""

    def __init__(self, front: PromptFront, encoder: StreamEncoder) -> None:
        super().__init__(front, encoder)
        self._choices = front.choices
        self._open = set(range(len(front.requests)))
        self._is_only_one = len(front.requests) == 1
        self._usages: dict[int, Usage] = {}
        self._surplus: dict[Loss, None] = {}

    @property
    def losses(self) -> Sequence[Loss]:
        """What could not be expressed so far."""
        return [*super().losses, *self._surplus]

    def feed(self, event: Event, prompt: int = 0) -> bytes:
        """The bytes to send for an event of a prompt."""
        if self._is_only_one:
            return super().feed(event)
        if type(event) is ResponseEnd:
            self._open.discard(prompt)
            return b"" if self._open else super().feed(event)
        if type(event) is UsageUpdate:
            self._usages[prompt] = event.usage
            return super().feed(UsageUpdate(reduce(add, self._usages.values())))
        choice = getattr(event, "choice", None)
        if choice is None:
            return super().feed(event)
        if choice >= self._choices:  # this index belongs to another prompt
            self._surplus[Loss(f"responses[{prompt}].choices[{choice}]", _TOO_MANY)] = None
            return b""
        return super().feed(event.replace(choice=prompt * self._choices + choice))

    def feed_all(self, events: Sequence[Event], prompt: int = 0) -> bytes:
        """The bytes to send for several events of a prompt."""
        return b"".join([self.feed(event, prompt) for event in events])


def prompt_front(
    name: str | Dialect,
    body: Body,
    *,
    path: str | None = None,
    clock: Callable[[], float] = time.time,
) -> PromptFront:
    """The front for the body of a client that sends prompts.

    Supported by Chat (`/v1/completions`) and Ollama (`/api/generate`); other dialects raise
    `InvalidRequest` with status 404.
    """
    spoken = dialect(name) if isinstance(name, str) else name
    services = spoken.services()
    home = None if services is None else services.prompt_front
    if home is None:
        msg = "this API has no prompt completions endpoint"
        raise InvalidRequest(msg, status=404)
    make: Callable[..., PromptFront] = import_module(home).PROMPT_FRONT
    return make(spoken, body, path=path, clock=clock)
