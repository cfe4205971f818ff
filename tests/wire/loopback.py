"""A server on loopback with a given answer, plain or streamed, for the vendors' own SDKs."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.cli.loopback import Came, Goes, serving


@dataclass
class Answers:
    """What the server answers to a request with `stream` and to others; and what came."""

    address: str = ""
    plain: bytes = b""
    streamed: bytes = b""
    status: int = 200
    came: list[Came] = field(default_factory=list[Came])

    def __call__(self, came: Came) -> Goes:
        """The answer to a request."""
        self.came.append(came)
        is_stream = "streamGenerate" in came.path or came.json.get("stream")
        is_sse = is_stream and self.status == 200
        kind = "text/event-stream" if is_sse else "application/json"
        answer = self.streamed if is_stream else self.plain
        return Goes(pieces=[answer], status=self.status, headers={"Content-Type": kind})


@contextmanager
def answering() -> Generator[Answers]:
    """A running server."""
    answers = Answers()
    with serving(answers) as server:
        answers.address = server.url
        yield answers
