"""Opens the model named on the command line; problems end the command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.cli.exit_codes import USAGE, Ending
from dragoman.cli.provider_status import (
    OwnModel,
    address_of,
    expect_llama,
    expect_ready,
    named_place,
    own_model,
)

if TYPE_CHECKING:
    from dragoman.cli.model_aliases import Chosen
    from dragoman.transport.model import Model, OpenedModel


def model_meant(name: str) -> Chosen:
    """The model that a name or alias stands for, with its base URL if not the default."""
    from dragoman.cli.model_aliases import Chosen, resolved
    from dragoman.cli.reachable_models import address_here

    chosen = resolved(name)
    return Chosen(chosen.name, chosen.base_url or address_here(chosen.name.partition(":")[0]))


def settings_of(
    model: str,
    *,
    base_url: str | None = None,
    dialect: str | None = None,
    timeout: float | None = None,
) -> dict[str, Any]:
    """The settings to open the model with; exits if they are invalid."""
    own = own_model(model)
    named = {"base_url": base_url, "dialect": dialect}
    settings = {name: value for name, value in named.items() if value is not None}
    if own is None:
        _expect_model(model, base_url)
        return settings | _timeouts(timeout)
    wrong = [name for name in settings if own.kind != "local" or name == "base_url"]
    if wrong:
        option = wrong[0].replace("_", "-")
        raise Ending(USAGE, f"{own.kind}: runs on this machine, and doesn't accept --{option}")
    return settings | _timeouts(timeout) if own.kind == "local" else settings


def opened(model: str, settings: dict[str, Any], *, may_fetch: bool) -> OpenedModel:
    """The model; a missing local one is downloaded if allowed or confirmed."""
    from dragoman.transport.model import open_model

    own = own_model(model)
    if own is not None and own.kind == "local":
        _ensure_here(own, is_allowed=may_fetch)
    return open_model(model, **settings)


def address_asked(model: Model, base_url: str | None = None) -> str | None:
    """The address of a model; None if it runs on this machine."""
    from dragoman.transport.client import Client

    if not isinstance(model, Client) or own_model(model.name) is not None:
        return None
    return address_of(model.provider, base_url)


def _timeouts(seconds: float | None) -> dict[str, Any]:
    from dragoman.transport.protocol import Timeouts

    return {} if seconds is None else {"timeouts": Timeouts(total=seconds)}


def _expect_model(model: str, base_url: str | None) -> None:
    """Exit if the provider is unknown or no model is named."""
    from dragoman.transport.deployments import parse_model

    name = parse_model(model)
    place = named_place(name.provider, has_model=name.chat is not None, model=name.chat)
    expect_ready(place, base_url)
    if name.chat is None and place.auth is not None and base_url is None:
        listing = f"`dragoman models {place.name}` lists them"
        raise Ending(
            USAGE, f"no model given for {place.name}: name one as {place.name}:MODEL; {listing}"
        )


def _ensure_here(own: OwnModel, *, is_allowed: bool) -> None:
    from dragoman.cli.fetching import ensure_fetched
    from dragoman.transport.local.catalogue import found

    source = found(own.rest)
    expect_llama()
    ensure_fetched(source, is_allowed=is_allowed)
