"""Tab completion in a chat: commands and their arguments."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dragoman.cli.exit_codes import Ending
from dragoman.errors import DragomanError
from dragoman.model.invisible import invisible

if TYPE_CHECKING:
    from dragoman.cli.chat.talk import Talk

MAX_CANDIDATES = 200
_SECONDS = 5.0  # timeout for a server's list of models


class Candidate(NamedTuple):
    """A completion for the text before the cursor."""

    text: str
    replaces: int
    """Number of characters before the cursor that it replaces."""
    about: str = ""
    shown: str | None = None
    """The label in the list, if not the text itself."""


Complete = Callable[["Talk", str], Coroutine[Any, Any, list[Candidate]]]


def fitting(typed: str, names: Iterable[str | tuple[str, str]]) -> list[Candidate]:
    """The names that start with the typed text, with their descriptions.

    Names with control characters are never offered.
    """
    pairs = [(name, "") if isinstance(name, str) else name for name in names]
    return [
        Candidate(name, len(typed), about)
        for name, about in pairs
        if name.lower().startswith(typed.lower()) and not invisible().search(name)
    ][:MAX_CANDIDATES]


async def nothing(_talk: Talk, _typed: str) -> list[Candidate]:
    """No completions: for commands without predictable arguments."""
    return []


# --- files


async def files(_talk: Talk, typed: str) -> list[Candidate]:
    """Files and directories that start with the typed text."""
    return await asyncio.to_thread(_files, typed)  # the directory may be on a slow network


def _files(typed: str) -> list[Candidate]:
    folder, _, begun = typed.rpartition("/")
    place = f"{folder}/" if "/" in typed else ""
    try:
        with os.scandir(Path(place or ".").expanduser()) as entries:
            names = sorted(_named(entry) for entry in entries)
    except (OSError, ValueError, RuntimeError):  # such as an unknown user
        return []
    shown = [name for name in names if begun.startswith(".") or not name.startswith(".")]
    found = [each for each in fitting(begun, shown) if each.text.startswith(begun)]
    return [Candidate(each.text, len(begun), each.about) for each in found]


def _named(entry: os.DirEntry[str]) -> str:
    try:
        is_folder = entry.is_dir()
    except OSError:
        is_folder = False
    return f"{entry.name}/" if is_folder else entry.name


# --- models


class ModelNames:
    """The available models; each server is queried once per chat, when first needed."""

    def __init__(self) -> None:
        self._listed: dict[str, list[str]] = {}

    async def complete(self, talk: Talk, typed: str) -> list[Candidate]:
        """Models as `provider:name`; before the colon, providers and local models."""
        if " " in typed.strip():
            return _dialects(typed)
        place, colon, _ = typed.partition(":")
        if not colon:
            return fitting(typed, await asyncio.to_thread(_places))
        names = await self._of(talk, place)
        return fitting(typed, names)

    async def _of(self, talk: Talk, place: str) -> list[str]:
        if place not in self._listed:
            found = await _models_of(place, _address(talk, place))
            if not found:
                return []  # it may be running the next time
            self._listed[place] = found
        return self._listed[place]


def _dialects(typed: str) -> list[Candidate]:
    from dragoman.wire.dialect import dialects

    return fitting(typed.rpartition(" ")[2], dialects())


def _places() -> list[tuple[str, str]]:
    from dragoman.cli.model_aliases import aliases
    from dragoman.cli.model_listing import local_rows
    from dragoman.cli.reachable_models import places

    try:
        short = [(alias, each.name) for alias, each in aliases().items()]
    except Ending:  # an unreadable aliases file: `/model NAME` reports it
        short = []
    here = [(str(row["model"]), "on this machine") for row in local_rows()]
    asked = [(f"{place.name}:", place.about) for place in places()]
    return [*short, *asked, *here, ("echo:", "repeats your messages")]


def _address(talk: Talk, place: str) -> str | None:
    from dragoman.cli.reachable_models import address_here

    is_current = talk.agent.model.name.partition(":")[0] == place
    return talk.base_url if is_current and talk.base_url else address_here(place)


async def _models_of(place: str, base_url: str | None) -> list[str]:
    from dragoman.cli.model_listing import local_rows
    from dragoman.cli.reachable_models import asked

    if place == "local":
        return [str(row["model"]) for row in local_rows()]
    try:
        found = await asked(place, base_url, _SECONDS)
    except DragomanError:
        return []
    return [f"{place}:{name}" for name in found]
