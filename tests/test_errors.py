"""The exception tree: as documented, picklable, with the attributes that callers need."""

from __future__ import annotations

import builtins
import copy
import pickle
import re
from typing import Any

import pytest

from dragoman import errors
from dragoman.errors import (
    Conflict,
    DragomanError,
    InvalidInputError,
    LossError,
    Overloaded,
    ProviderError,
    QuotaExceeded,
    RateLimited,
    ServerError,
    StreamInterrupted,
    WireError,
)

pytestmark = pytest.mark.whole

CLASSES = [getattr(errors, name) for name in errors.__all__]
PROVIDER_FIELDS: dict[str, Any] = {
    "provider": "openai", "status": 429, "code": "slow_down", "request_id": "r1",
    "retryable": False, "retry_after": 1.5,
}  # fmt: skip


def drawn() -> dict[str, str]:
    """The tree in the docstring, as child to parent."""
    tree: dict[str, str] = {}
    branch = ["DragomanError"]
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"([│ ]*)[├└] (\w+)", line)
        if found:
            depth = 1 + len(found[1]) // 4
            branch[depth:] = [found[2]]
            tree[found[2]] = branch[depth - 1]
    return tree


def test_the_tree_is_as_documented() -> None:
    """Every class is where the docstring has it, and none is missing."""
    parents = {
        kind.__name__: next(base.__name__ for base in kind.__bases__ if base in CLASSES)
        for kind in CLASSES
        if kind is not DragomanError
    }
    assert drawn() == parents
    assert len(parents) == 33


def test_names_follow_one_rule() -> None:
    """Families end in `Error`; a case only does if its word alone would name no failure."""
    first_level = {name for name, parent in drawn().items() if parent == "DragomanError"}
    families = {*first_level, *drawn().values()} - {"AllFailed", "StreamInterrupted"}  # say it
    assert [name for name in sorted(families) if not name.endswith("Error")] == []
    cases = [name for name in drawn() if name not in families and name.endswith("Error")]
    assert cases == ["ConnectError", "TimeoutError", "AuthenticationError", "ServerError"]


@pytest.mark.parametrize("kind", CLASSES)
def test_one_root_catches_all(kind: type[DragomanError]) -> None:
    """`except DragomanError` is enough, and `str` is the message."""
    error = kind("what happened")
    with pytest.raises(DragomanError, match="what happened"):
        raise error


def test_some_are_also_builtin_exceptions() -> None:
    """Code that doesn't know this library still catches them."""
    assert issubclass(InvalidInputError, ValueError)
    assert issubclass(errors.OrderError, ValueError)
    assert issubclass(errors.TimeoutError, builtins.TimeoutError)


@pytest.mark.parametrize(("error", "fields"), [
    (WireError("broken", dialect="gemini", path="contents[0]"),
     {"dialect": "gemini", "path": "contents[0]"}),
    (LossError("lossy", losses=["a", "b"]), {"losses": ("a", "b")}),
    (StreamInterrupted("cut", partial={"a": 1}), {"partial": {"a": 1}}),
    (Conflict("late", expected=1, actual=2), {"expected": 1, "actual": 2}),
    (RateLimited("slow", **PROVIDER_FIELDS), PROVIDER_FIELDS),
    *((kind("plain"), {}) for kind in CLASSES),
])  # fmt: skip
@pytest.mark.parametrize("copied", [
    copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error)),  # noqa: S301 - our own bytes
], ids=["copy", "deepcopy", "pickle"])  # fmt: skip
def test_errors_keep_their_attributes(
    error: DragomanError, fields: dict[str, Any], copied: Any
) -> None:
    """When pickled and copied."""
    back = copied(error)
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert back.args == error.args
    assert vars(back) == vars(error)
    assert {name: getattr(back, name) for name in fields} == fields


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if issubclass(kind, ProviderError)])
def test_which_errors_are_retryable(kind: type[ProviderError]) -> None:
    """By default temporary ones; the provider's flag overrides that."""
    assert kind("x").retryable is (kind in {RateLimited, Overloaded, ServerError})
    assert kind("x", retryable=True).retryable is True
    assert kind("x", retryable=False).retryable is False


def test_an_exhausted_quota_is_not_retryable() -> None:
    """Quota differs from rate limits: providers send 429 for both."""
    assert not QuotaExceeded("x", status=429).retryable


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if issubclass(kind, ProviderError)])
def test_attributes_of_a_provider_error_default_to_none(kind: type[ProviderError]) -> None:
    """All attributes exist, so that callers need no checks."""
    fields = {name: getattr(kind("x"), name) for name in PROVIDER_FIELDS if name != "retryable"}
    assert set(fields.values()) == {None}


def test_defaults_of_the_others() -> None:
    """They exist as well."""
    assert (WireError("x").dialect, WireError("x").path) == (None, None)
    assert LossError("x").losses == ()
    assert StreamInterrupted("x").partial is None
    assert (Conflict("x").expected, Conflict("x").actual) == (None, None)
