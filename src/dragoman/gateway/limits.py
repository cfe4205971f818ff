"""How much a request may make a model put out: what is reserved of a budget for it.

A client may spell a limit in several ways, and servers differ in which of them they obey. So the
largest counts, times the number of answers, and what is no whole number is no limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Raw

from dragoman.gateway.translation import Settings
from dragoman.model.requests import Sampling
from dragoman.providers.context_windows import context_window, max_output_tokens
from dragoman.wire.known_fields import KnownFields, values_at

DEFAULT_OUTPUT_TOKENS = 4096
"""Output tokens to reserve if the request sets no limit."""
_UNKNOWN_MAXIMUM = 131_072
_MOST_ANSWERS = 128  # of any API
_MAX_TOKENS = 10**9


def unknown_maximum() -> int:
    """The output limit of models that nothing is known about."""
    return _UNKNOWN_MAXIMUM


def maximum_of(models: Iterable[tuple[str, str | None]]) -> int:
    """The most output tokens that any of some models, given with their providers, can produce."""
    names = [f"{provider}:{model}" for provider, model in models if model is not None]
    known = [max_output_tokens(name) or context_window(name) for name in names]
    return max((each or _UNKNOWN_MAXIMUM for each in known), default=_UNKNOWN_MAXIMUM)


def output_tokens(
    fields: Mapping[str, Raw],
    known: KnownFields,
    read: Sampling,
    settings: Settings,
    maximum: Callable[[], int],
) -> int:
    """Output tokens to reserve for a request with these fields, of which `read` was decoded."""
    limit, answers = settings.fixed.get("max_tokens"), settings.fixed.get("choices")
    if limit is None:
        given = values_at(fields, known.limits)
        if given and read.max_tokens is None:
            # Such as Ollama's 0: it means no limit.
            limit = max([maximum(), *(_whole(each) or 0 for each in given)])
        elif given:
            limit = max([maximum() if (n := _whole(each)) is None else n for each in given])
        else:
            limit = settings.defaults.get("max_tokens") or DEFAULT_OUTPUT_TOKENS
    if answers is None:
        given = values_at(fields, known.answers) or [settings.defaults.get("choices") or 1]
        answers = max([_MOST_ANSWERS if (n := _whole(each)) is None else n for each in given])
    return min(limit * max(answers, 1), _MAX_TOKENS)


def _whole(value: Any) -> int | None:
    """A whole number of at least 0; 16.0 is one."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and value >= 0 else None
