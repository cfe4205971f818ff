"""Rules that several dialects share: calls and results, sampling, models, integers, efforts."""

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
    """Calls without a result, or results without a call: ids that are not among the others."""
    known = set(others)
    yield from ((path, message) for path, one in ids if one not in known)


def used_twice(ids: Iterable[tuple[str, Hashable]], message: str) -> Found:
    """Ids that occurred before, with their paths; None is ignored."""
    seen: set[Hashable] = set()
    for path, one in ids:
        if one in seen:
            yield path, message
        elif one is not None:
            seen.add(one)


def refused_sampling(
    body: Object, target: Target, *, is_thinking: bool, names: Mapping[str, str] | None = None
) -> Found:
    """Settings that the target refuses, unless they have their default values.

    `names` has the dialect's names of settings where they differ from those of `Sampling`.
    """
    for name in dict.fromkeys(_refused(target, is_thinking=is_thinking)):
        key = names.get(name, name) if names else name
        if not _is_usual(body.get(key), name):
            yield key, "this model accepts only the default value"


def wrong_model(body: Object) -> Found:
    """A model that is not a non-empty string."""
    model = body.get("model")
    if model is not None and (not isinstance(model, str) or not model):
        yield "model", "model must be a non-empty string"


def orphaned_choice(body: Object, *fields: str) -> Found:
    """Settings about tools, although there are none."""
    if not any(body.get(key) for key in ("tools", "functions")):
        for key in fields:
            if body.get(key) is not None:
                yield key, "only allowed together with tools"


def missing_model(body: Object, target: Target) -> Found:
    """A missing model, where the target requires one; the sender may still add it."""
    if target.fields.needs_model and body.get("model") is None:
        yield "model", "model is required"


def unlisted_model(body: Object, target: Target) -> Found:
    """A model that the vendor doesn't list: it may be new, or a typo."""
    listed, model = target.host.other_models, target.model
    if not listed or model is None or body.get("model", model) != model:
        return
    names = [name for name in listed if "*" not in name]
    near = closest(model, names)
    hint = "no listed name is similar" if near is None else f"did you mean {near}?"
    yield "model", f"the vendor doesn't list this model ({hint})"


def wrong_counts(body: Object, *names: str, path: str = "") -> Found:
    """Settings that must be integers, and are not."""
    for name in names:
        value = body.get(name)
        if value is not None and not is_whole(value):
            yield f"{path}{name}", "must be a whole number"


def out_of_range(settings: Object, ranges: Mapping[str, tuple[int, int]], path: str = "") -> Found:
    """Settings that must be numbers in a range, and are not."""
    for name, (low, high) in ranges.items():
        value = settings.get(name)
        if value is not None and not (is_number(value) and low <= value <= high):
            yield f"{path}{name}", f"must be a number from {low} to {high}"


def unknown_detail(detail: object, path: str, target: Target) -> Found:
    """An image detail that the target doesn't know."""
    known = target.media.details
    if known is not None and detail is not None and detail not in known:
        yield path, f"must be one of {', '.join(known)}"


def is_whole(value: object) -> bool:
    """Whether a JSON value is a number without a fraction."""
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def unknown_effort(effort: Any, path: str, target: Target) -> Found:
    """An unsupported effort; or any, if thinking can't be requested."""
    if effort is None:
        return
    if target.thinking.form == "never":
        yield path, "this model does not support thinking"
    elif target.thinking.efforts is not None and effort not in target.thinking.efforts:
        yield path, "this model does not support this effort"


def _refused(target: Target, *, is_thinking: bool) -> Iterator[str]:
    yield from target.sampling.refused
    if is_thinking:
        yield from target.sampling.refused_while_thinking


def _is_usual(value: Any, name: str) -> bool:
    if value is None or value is False or (is_number(value) and value == DEFAULTS.get(name)):
        return True
    return isinstance(value, (list, tuple)) and not value
