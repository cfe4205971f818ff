"""Requests with invalid or ambiguous framing: one error, and no request smuggling."""

from __future__ import annotations

import json
import random

import pytest

from tests.gateway.abuse.stage import CANARY, Stage, refused, request
from tests.gateway.client_requests import FRONTS, body_for, path_for

pytestmark = pytest.mark.whole

CHUNKED = ("transfer-encoding", "chunked")
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
BROKEN: dict[str, tuple[list[tuple[str, str]], bytes]] = {
    "both lengths": ([CHUNKED, ("content-length", "5")], b"0\r\n\r\n" + SMUGGLED),
    "both, length first": ([("content-length", "5"), CHUNKED], b"0\r\n\r\n" + SMUGGLED),
    "unknown coding": ([("transfer-encoding", "xchunked")], b"0\r\n\r\n" + SMUGGLED),
    "identity": ([("transfer-encoding", "identity")], b"0\r\n\r\n" + SMUGGLED),
    "chunked twice": ([("transfer-encoding", "chunked, chunked")], b"0\r\n\r\n" + SMUGGLED),
    "chunked in two headers": ([CHUNKED, CHUNKED], b"0\r\n\r\n" + SMUGGLED),
    "chunked, not last": ([("transfer-encoding", "chunked, gzip")], b"0\r\n\r\n" + SMUGGLED),
    "tab before chunked": ([("transfer-encoding", "\x0bchunked")], b"0\r\n\r\n" + SMUGGLED),
    "two lengths": ([("content-length", "5"), ("content-length", "6")], SMUGGLED),
    "list of lengths": ([("content-length", "5, 5")], SMUGGLED),
    "signed length": ([("content-length", "+5")], SMUGGLED),
    "negative length": ([("content-length", "-5")], SMUGGLED),
    "length in hex": ([("content-length", "0x5")], SMUGGLED),
    "endless length": ([("content-length", "9" * 30)], SMUGGLED),
    "empty length": ([("content-length", "")], SMUGGLED),
    "negative chunk": ([CHUNKED], b"-1\r\n\r\n" + SMUGGLED),
    "huge chunk": ([CHUNKED], b"f" * 20 + b"\r\n\r\n" + SMUGGLED),
    "chunk of no number": ([CHUNKED], b"xyz\r\n\r\n" + SMUGGLED),
    "chunk with LF only": ([CHUNKED], b"2\n{}\n0\n\n" + SMUGGLED),
    "chunk longer than it says": ([CHUNKED], b"1\r\n{}\r\n0\r\n\r\n" + SMUGGLED),
    "chunk extension with LF": ([CHUNKED], b"2;a\nb\r\n{}\r\n0\r\n\r\n" + SMUGGLED),
    "folded header": ([("x", "y\r\n z")], SMUGGLED),
    "CR in a header": ([("x", "y\rz")], SMUGGLED),
    "LF in a header": ([("x", "y\nz")], SMUGGLED),
    "NUL in a header": ([("x", "y\0z")], SMUGGLED),
    "space before the colon": ([("content-length ", "5")], SMUGGLED),
    "no name": ([("", "y")], SMUGGLED),
    "too many headers": ([(f"x-{n}", "y") for n in range(200)], SMUGGLED),
    "long header": ([("x", "y" * 100_000)], SMUGGLED),
    "long name": ([("x" * 100_000, "y")], SMUGGLED),
    "too many trailers": ([CHUNKED], b"0\r\n" + b"x: yyyyyyyyyyyyyyyyyyyy\r\n" * 9000 + b"\r\n"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_invalid_framing_is_rejected(stage: Stage, front: str, kind: str) -> None:
    """One error in the front's form, and the connection closes: the rest is not a request."""
    headers, body = BROKEN[kind]
    found = stage.send(request(path_for(front), body, *headers))
    assert len(found.answers) == 1, found
    refused(front, found.answers[0], 400, 413, 431)
    assert not found.rest
    stage.serves(front)


LIES = {
    "longer": (5, b"", ()),
    "much longer": (500_000, b"", ()),
    "beyond the limit": (2**40, b"", (413,)),
    "shorter": (-5, b"", (400,)),
    "zero": (None, b"", (400, 404)),
}


@pytest.mark.parametrize("kind", LIES)
def test_a_false_length_affects_no_other_client(stage: Stage, front: str, kind: str) -> None:
    """The body is rejected, or its client has disconnected."""
    body = json.dumps(body_for(front, CANARY)).encode()
    more, _, statuses = LIES[kind]
    length = 0 if more is None else len(body) + more
    asked = len(stage.upstream.asked)
    data = request(path_for(front), body, ("content-length", str(length)))
    found = stage.send(data, half_closes=not statuses)
    if statuses:
        refused(front, found.answers[0], *statuses)
    else:
        assert not found.answers
    assert len(stage.upstream.asked) == asked
    stage.serves(front)


def test_trailers_are_not_headers(stage: Stage, front: str) -> None:
    """They are ignored: no proxy in front of the gateway has checked them."""
    body = json.dumps(body_for(front, CANARY)).encode()
    chunks = b"%x\r\n%s\r\n0\r\nhost: evil.example\r\norigin: http://evil.example\r\n\r\n"
    [answer] = stage.send(request(path_for(front), chunks % (len(body), body), CHUNKED)).answers
    assert answer.status == 200, answer


def test_a_rejected_request_is_answered_once(stage: Stage, front: str) -> None:
    """A body that arrives after the error gets no second response."""
    with stage.connect() as connection:
        connection.sendall(request(f"{path_for(front)}x", b"", CHUNKED, ("connection", "")))
        received = b""
        while not received.endswith(b"}"):
            received += connection.recv(65536)
        connection.sendall(b"no chunk\r\n")
        try:
            more = connection.recv(65536)
        except ConnectionResetError:
            more = b""
    assert not more
    stage.serves(front)


GOOD = [request(path_for(front), json.dumps(body_for(front)).encode()) for front in FRONTS]


@pytest.mark.parametrize("seed", range(5))
def test_damaged_requests(stage: Stage, seed: int) -> None:
    """Requests with changed, cut, repeated and joined bytes cause no internal error."""
    _damage(stage, random.Random(seed), 60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_many_damaged_requests(stage: Stage, seed: int) -> None:
    """The same, far more often."""
    _damage(stage, random.Random(1000 + seed), 2000)


def _damage(stage: Stage, chance: random.Random, rounds: int) -> None:
    seeds = GOOD + [request(path_for("anthropic"), body, *head) for head, body in BROKEN.values()]
    small = [each for each in seeds if len(each) < 10_000]
    for _ in range(rounds):
        data = bytearray(b"".join(chance.choices(small, k=chance.randint(1, 3))))
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(data) or 1)
            match chance.randrange(4):
                case 0:
                    data[at : at + 1] = bytes([chance.randrange(256)])
                case 1:
                    del data[at : at + chance.randrange(1, 9)]
                case 2:
                    data[at:at] = chance.choice([b"\r\n", b"\n", b"\0", b":", b" ", b"%", b"0\r\n"])
                case _:
                    data[at:at] = data[chance.randrange(len(data) or 1) :][:40]
        found = stage.send(bytes(data), half_closes=True)
        for answer in found.answers:
            assert answer.status < 500, (answer, bytes(data))
    stage.serves()
