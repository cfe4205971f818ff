"""Thinking that is both readable and encrypted, as few wires have it, is never lost silently."""

from __future__ import annotations

import itertools

import pytest

import dragoman
from dragoman import Message, Request, Role, Text, Thinking
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
)
from dragoman.model.parts import Origin
from dragoman.model.responses import Choice, Response
from dragoman.model.usage import FinishReason
from dragoman.wire.losses import Loss
from tests.wire.anthropic import stream_grammar as anthropic_grammar
from tests.wire.openai_responses import stream_grammar as responses_grammar
from tests.wire.streamed import written

_TEXT, _DATA, _SIGNATURE = "It must be Basel.", "c2VhbGVkIQ==", "c2lnbmVkIQ=="
_KINDS = list(
    itertools.product([None, "here"], ["full", "summary", "redacted"], [None, _SIGNATURE])
)


def _thought(dialect: str, kind: tuple[str | None, str, str | None]) -> Thinking:
    home, form, signature = kind
    origin = None if home is None else Origin(dialect=dialect)
    return Thinking(_TEXT, _DATA, form, signature=signature, origin=origin)  # type: ignore[arg-type]  # one of three


def _check_told(thought: Thinking, body: bytes, losses: list[Loss]) -> None:
    """All of a thinking part is in the body, or its loss is reported."""
    said = body.decode()
    missing = [value for value in (thought.text, thought.data, thought.signature)
               if value is not None and value not in said]  # fmt: skip
    assert not missing or any("parts[0]" in loss.path for loss in losses)


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("dialect", dragoman.dialects())
def test_plain(dialect: str, kind: tuple[str | None, str, str | None]) -> None:
    """Requests and responses have the text, the seal and the signature, or report them."""
    thought = _thought(dialect, kind)
    answer = Message(Role.ASSISTANT, (thought, Text("Basel.")))
    request = Request(model="m", messages=(Message.user("Where?"), answer, Message.user("Why?")))
    encoded = dragoman.dialect(dialect).encode_request(request)
    _check_told(thought, encoded.to_bytes(), list(encoded.losses))
    response = Response(choices=(Choice(0, answer, FinishReason.STOP),))
    encoded = dragoman.dialect(dialect).encode_response(response)
    _check_told(thought, encoded.to_bytes(), list(encoded.losses))


@pytest.mark.parametrize("is_in_pieces", [True, False])
@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("dialect", dragoman.dialects())
def test_streamed(
    dialect: str, kind: tuple[str | None, str, str | None], is_in_pieces: bool
) -> None:
    """Streams do too, with a valid sequence of events."""
    thought = _thought(dialect, kind)
    pieces: list[Event] = [PartStart(0, thought)]
    if is_in_pieces:
        begun = thought.replace(text="", data=None, signature=None)
        pieces = [PartStart(0, begun), PartDelta(0, _TEXT), PartDelta(0, data=_DATA),
                  PartDelta(0, signature=thought.signature)]  # fmt: skip
    stream, losses = written(dialect, [
        ResponseStart(id="r1", model="m"), *pieces, PartStop(0), PartStart(1, Text("Basel.")),
        PartStop(1), ChoiceFinish(FinishReason.STOP), ResponseEnd(),
    ])  # fmt: skip
    _check_told(thought, stream, losses)
    if dialect == "anthropic":
        anthropic_grammar.check_stream(stream)
    elif dialect == "openai-responses":
        responses_grammar.check_stream(stream, may_contradict=True)


def test_a_detail_of_chat_is_readable_or_sealed() -> None:
    """Chat has both, in two details."""
    thought = Thinking(_TEXT, _DATA, "summary", origin=Origin(dialect="openai-chat"))
    response = Response(choices=(Choice(0, Message(Role.ASSISTANT, (thought,))),))
    encoded = dragoman.dialect("openai-chat").encode_response(response)
    assert encoded.losses == ()
    told = dragoman.dialect("openai-chat").decode_response(encoded.body).message.parts
    first, second = [part for part in told if isinstance(part, Thinking)]
    assert (first.text, first.form, first.data) == (_TEXT, "summary", None)
    assert (second.text, second.form, second.data) == ("", "redacted", _DATA)


def test_each_seal_of_responses_has_its_item() -> None:
    """An item has one encrypted content, so two sealed thinking parts are two items."""
    home = Origin(dialect="openai-responses")
    thoughts = (Thinking("a", "MQ==", origin=home), Thinking("b", "Mg==", origin=home))
    response = Response(choices=(Choice(0, Message(Role.ASSISTANT, thoughts)),))
    body = dragoman.dialect("openai-responses").encode_response(response).body
    assert [item["encrypted_content"] for item in body["output"]] == ["MQ==", "Mg=="]
