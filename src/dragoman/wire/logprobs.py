"""Log probabilities of tokens, in the three formats that exist.

`Choice.logprobs` holds them as received. Formats are recognised by structure, whatever dialect they
came from: an object with `content` (OpenAI), the same list without it (Ollama), or candidates
(Google). Another dialect writes the `Token`s in its own format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dragoman.model.frozen import thaw
from dragoman.wire.losses import Loss

UNREADABLE = "log probabilities in an unknown format are left out"
_IDS = "token ids are left out: they mean nothing to other models"


class Token(NamedTuple):
    """A token, its log probability, and the alternatives at its position."""

    token: str
    logprob: float
    bytes: list[int] | None
    others: tuple[Token, ...] = ()


class Tokens(NamedTuple):
    """The tokens of a response, and whether they had token ids."""

    tokens: list[Token]
    has_ids: bool = False


def tokens_of(logprobs: Any) -> Tokens | None:
    """The tokens; None if there are none, or the format is unknown or has more content."""
    wire = thaw(logprobs) if isinstance(logprobs, (Mapping, list, tuple)) else None
    found = _read(wire)
    return found if found is not None and found.tokens else None


def _read(wire: Any) -> Tokens | None:
    try:
        if isinstance(wire, list):
            return Tokens([_token(item) for item in wire])
        if not isinstance(wire, dict):
            return None
        if isinstance(wire.get("content"), list) and not wire.get("refusal"):
            return Tokens([_token(item) for item in wire["content"]])
        if isinstance(wire.get("chosenCandidates"), list):
            return _candidates(wire["chosenCandidates"], wire.get("topCandidates") or [])
    except (KeyError, TypeError):
        return None
    return None


def _token(wire: Any, *, is_inner: bool = False) -> Token:
    token, logprob, raw = wire["token"], wire["logprob"], wire.get("bytes")
    if type(token) is not str or type(logprob) not in (int, float):
        raise TypeError
    others = () if is_inner else wire.get("top_logprobs") or ()
    inner = tuple([_token(item, is_inner=True) for item in others])
    return Token(token, logprob, raw if isinstance(raw, list) else None, inner)


def _candidates(chosen: list[Any], top: list[Any]) -> Tokens:
    tokens: list[Token] = []
    for number, item in enumerate(chosen):
        listed = _listed(top[number]) if number < len(top) else ()
        tokens.append(_candidate(item)._replace(others=tuple(map(_candidate, listed))))
    return Tokens(tokens, any("tokenId" in item for item in chosen))


def _listed(wire: Any) -> Any:
    if not isinstance(wire, dict):
        raise TypeError
    return wire.get("candidates") or ()


def _candidate(wire: Any) -> Token:
    token, logprob = wire["token"], wire["logProbability"]
    if type(token) is not str or type(logprob) not in (int, float):
        raise TypeError
    return Token(token, logprob, list(token.encode("utf-8", "replace")))


# --- encoding


def as_list(tokens: Iterable[Token]) -> list[dict[str, Any]]:
    """The tokens in the format of OpenAI's dialects and Ollama."""
    return [
        {**_entry(token), "top_logprobs": [_entry(other) for other in token.others]}
        for token in tokens
    ]


def _entry(token: Token) -> dict[str, Any]:
    return {"token": token.token, "logprob": token.logprob, "bytes": token.bytes}


def as_candidates(tokens: Iterable[Token]) -> dict[str, Any]:
    """The tokens in Google's format."""
    given = list(tokens)
    wire: dict[str, Any] = {"chosenCandidates": [_as_candidate(token) for token in given]}
    if any(token.others for token in given):
        wire["topCandidates"] = [
            {"candidates": [_as_candidate(other) for other in token.others]} for token in given
        ]
    return wire


def _as_candidate(token: Token) -> dict[str, Any]:
    return {"token": token.token, "logProbability": token.logprob}


def lost(found: Tokens | None, path: str) -> Iterator[Loss]:
    """What is lost in another format."""
    if found is None:
        yield Loss(path, UNREADABLE)
    elif found.has_ids:
        yield Loss(f"{path}.tokenId", _IDS)
