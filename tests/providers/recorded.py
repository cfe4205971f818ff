"""The accepted requests of the recordings, with the targets that they were sent to."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman import Request, Target
from tests.corpus import Corpus
from tests.wire.hosts import body_of, provider_of, target_of
from tests.wire.recorded import Body, bodies
from tests.wire.refused import FAULTY


def accepted(corpus: Corpus, dialect: str) -> Iterator[tuple[Body, Request, Target]]:
    """The accepted requests of a dialect, with their targets: provider and model as recorded."""
    for body in bodies(corpus, dialect):
        is_known = body.kind == "request" and provider_of(body.recording, dialect) is not None
        if not is_known or body.recording.row.file in FAULTY:
            continue
        target = target_of(body.recording, dialect)
        wire = body_of(body.recording, target)
        sent = Body(body.dialect, body.kind, wire, body.path, body.recording)
        request = sent.decode()
        assert isinstance(request, Request)
        yield sent, request, target
