"""Rules that several dialects share: calls and results, sampling, models, counts and efforts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from dragoman.model.spelling import closest
from dragoman.wire.fitting.settings import DEFAULTS
from dragoman.wire.target import Target
from dragoman.wire.violations import Found, Object, is_number


def without_partner(
    ids: Iterable[tuple[str, Hashable]], others: Iterable[Hashable], message: str
) -> Found:
    """Calls without a result, or results without a call: ids, by path, that no other has."""
    known = set(others)
    yield from ((path, message) for path, one in ids if one not in known)


def used_twice(ids: Iterable[tuple[str, Hashable]], message: str) -> Found:
    """Ids, by path, that another before them has; None is no id."""
    seen: set[Hashable] = set()
    for path, one in ids:
        if one in seen:
            yield path, message
        elif one is not None:
            seen.add(one)


def refused_sampling(
    body: Object, target: Target, *, is_thinking: bool, names: Mapping[str, str] | None = None
) -> Found:
    """The settings that the target does not take, unless they are as they would be anyway.

    `names`: what the dialect calls them, where that is not what `Sampling` does.
    """
    for name in dict.fromkeys(_refused(target, is_thinking=is_thinking)):
        key = names.get(name, name) if names else name
        if not _is_usual(body.get(key), name):
            yield key, "this model takes the default only"


def wrong_model(body: Object) -> Found:
    """A model that is no name."""
    model = body.get("model")
    if model is not None and (not isinstance(model, str) or not model):
        yield "model", "the model must be a name"


def missing_model(body: Object, target: Target) -> Found:
    """No model where the target has to be told; whoever sends the body may still fill it in."""
    if target.fields.needs_model and body.get("model") is None:
        yield "model", "the model's name is needed"


def unlisted_model(body: Object, target: Target) -> Found:
    """The target's model, where its maker does not list it: it may be new, or a slip."""
    listed, model = target.host.other_models, target.model
    if not listed or model is None or body.get("model", model) != model:
        return
    names = [name for name in listed if "*" not in name]
    near = closest(model, names)
    hint = "no name is close to it" if near is None else f"the closest name is {near}"
    yield "model", f"a model that is not known to be there: {hint}; nothing is assumed about it"


def wrong_counts(body: Object, *names: str, path: str = "") -> Found:
    """Settings that are numbers of something, and are not."""
    for name in names:
        value = body.get(name)
        if value is not None and not is_whole(value):
            yield f"{path}{name}", "must be a whole number"


def is_whole(value: object) -> bool:
    """Whether a JSON value is a number without a fraction."""
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def unknown_effort(effort: Any, path: str, target: Target) -> Found:
    """An effort that the target does not know, or any where it can't be asked to think."""
    if effort is None:
        return
    if target.thinking.form == "never":
        yield path, "this model can't be asked to think"
    elif target.thinking.efforts is not None and effort not in target.thinking.efforts:
        yield path, "this model does not know this effort"


def _refused(target: Target, *, is_thinking: bool) -> Iterator[str]:
    yield from target.sampling.refused
    if is_thinking:
        yield from target.sampling.refused_while_thinking


def _is_usual(value: Any, name: str) -> bool:
    if value is None or value is False or (is_number(value) and value == DEFAULTS.get(name)):
        return True
    return isinstance(value, (list, tuple)) and not value
