"""Providers: each is a `PROVIDER` in its own file, found by listing this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman._lazy import lazily

if TYPE_CHECKING:
    from dragoman.providers.checking import check
    from dragoman.providers.context_windows import context_window
    from dragoman.providers.price import Price
    from dragoman.providers.prices import Prices, cost_of
    from dragoman.providers.provider import Provider
    from dragoman.providers.registry import provider_names
    from dragoman.providers.translation import translate

_HOMES = {
    "checking": ("check",),
    "context_windows": ("context_window",),
    "price": ("Price",),
    "prices": ("Prices", "cost_of"),
    "provider": ("Provider",),
    "registry": ("provider_names",),
    "translation": ("translate",),
}

__all__ = [
    "Price",
    "Prices",
    "Provider",
    "check",
    "context_window",
    "cost_of",
    "provider_names",
    "translate",
]

__getattr__, __dir__ = lazily(__name__, _HOMES)
