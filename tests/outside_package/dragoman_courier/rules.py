"""What the vendor refuses: rules that find it in a body, and a step of fitting that repairs it.

A rule looks at a body alone, not at how it came to be: it judges the encoder. Most repairs are
asked for by the flags of the `Target`; one that only this dialect needs is a step of its own.
"""

from __future__ import annotations

from dragoman.model.requests import Request
from dragoman.wire.fitting.steps import Step
from dragoman.wire.losses import Note, Repair
from dragoman.wire.target import Target
from dragoman.wire.violations import Found, Object, Rule, Rulebook, listed

MOST = 4096
"""The largest `limit`."""


def shape_turns_are_listed(body: Object) -> Found:
    """There are turns, in a list."""
    if not isinstance(body.get("turns"), list):
        yield "turns", "a request has a list of turns"


def shape_turns_have_pieces(body: Object) -> Found:
    """Every turn says something."""
    for path, turn in listed(body, "turns"):
        if not isinstance(turn.get("pieces"), list) or not turn["pieces"]:
            yield path, "a turn has pieces"


def shape_texts_are_not_empty(body: Object) -> Found:
    """A piece of text has characters."""
    for path, turn in listed(body, "turns"):
        for place, piece in listed(turn, "pieces"):
            if piece.get("kind") == "text" and piece.get("text") == "":
                yield f"{path}.{place}", "a text is not empty"


def shape_calls_are_answered(body: Object) -> Found:
    """Replies to all calls stand before anything else is said."""
    waiting: set[str] = set()
    for path, turn in listed(body, "turns"):
        for _, piece in listed(turn, "pieces"):
            kind, ref = piece.get("kind"), str(piece.get("ref"))
            if kind == "reply":
                waiting.discard(ref)
            elif waiting and turn.get("from") != "agent":
                yield path, "a call before this turn has no reply"
                waiting = set()
            elif kind == "call":
                waiting.add(ref)


def limit_is_not_too_large(body: Object) -> Found:
    """An answer has a largest size."""
    if isinstance(body.get("limit"), int) and body["limit"] > MOST:
        yield "limit", f"an answer has at most {MOST} tokens"


def with_possible_limit(request: Request, target: Target, notes: list[Note]) -> Request:
    """The request with a limit that is taken; the same object where there is nothing to do."""
    limit = request.sampling.max_tokens
    if limit is None or limit <= MOST or not target.is_strict:
        return request
    notes.append(Repair("sampling.max_tokens", "limit", "retyped", f"at most {MOST} tokens"))
    return request.replace(sampling=request.sampling.replace(max_tokens=MOST))


STEPS = (Step(with_possible_limit, ("is_strict",)),)

_SEEN = ("courier-cloud",)  # who was seen to refuse a request for it

RULEBOOK = Rulebook(
    (
        Rule(shape_turns_are_listed),
        Rule(shape_turns_have_pieces, "error", "E", _SEEN, ("turns.refuses_empty_messages",)),
        Rule(shape_texts_are_not_empty, "error", "E", _SEEN, ("turns.refuses_empty_text",)),
        Rule(shape_calls_are_answered, "error", "E", _SEEN, ("turns.pairs_results",)),
        Rule(limit_is_not_too_large, "error", "D"),
    ),
    lambda body, _target, _path, _headers: body,  # or whatever the rules would rather look at
)
