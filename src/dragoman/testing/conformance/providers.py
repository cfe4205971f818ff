"""What every provider must be: a place that speaks a dialect, with what is needed to reach it."""

from __future__ import annotations

from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.providers.provider import Provider
from dragoman.wire.dialect import dialect, is_dialect


def test_its_dialect_is_known(host: Provider) -> None:
    """Of its target, whatever the model."""
    for model in (None, "a-model"):
        target = host.target(model)
        assert is_dialect(target.dialect)
        assert target.provider == host.name


def test_a_request_is_encoded_for_it(host: Provider) -> None:
    """A plain request loses nothing, and passes the rules for this target."""
    target = host.target("a-model")
    spoken = dialect(target.dialect)
    request = Request(model="a-model", messages=(Message.user("Hi"),))
    encoded = spoken.encode_request(request, target)
    assert encoded.or_raise().losses == ()
    found = spoken.check(encoded.to_bytes(), path=encoded.path, target=target)
    assert [each for each in found if each.severity == "error"] == []


def test_each_of_its_dialects_has_a_target(host: Provider) -> None:
    """And an address to send requests to."""
    assert host.dialects
    for name in host.dialects:
        assert host.target("a-model", name).dialect == name


__all__ = [name for name in globals() if name.startswith("test_")]
