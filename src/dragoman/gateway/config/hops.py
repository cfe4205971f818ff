"""Reads the `to` of a route: the providers and models to try, in order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from dragoman.errors import DragomanError
from dragoman.gateway.config import checks
from dragoman.gateway.config.discovery import place_of
from dragoman.gateway.config.document import WRONG, Check, Document
from dragoman.gateway.config.positions import Path
from dragoman.gateway.config.provider_tables import OWN_KINDS, known_provider
from dragoman.gateway.config.settings import Hop, Place
from dragoman.model.spelling import did_you_mean
from dragoman.providers.readiness import is_own_server, missing_variables
from dragoman.providers.registry import provider_names

_MAX_WEIGHT = 1_000_000
_FORM = 'a provider such as "lab", or a model such as "openai:gpt-5"'


class HopReader:
    """Reads hops; `places` collects those of the file and others that hops name."""

    def __init__(self, places: Mapping[str, Place], environ: Mapping[str, str]) -> None:
        self.places = dict(places)
        self._own = tuple(places)
        self._environ = environ
        self._fields: Mapping[str, Check] = {
            "to": self._named,
            "weight": checks.whole(0, _MAX_WEIGHT),
        }

    def read(self, document: Document, path: Path, value: Any) -> Any:
        """Read the hops of a route: a list, or a single hop."""
        if not isinstance(value, list):
            hop = self._hop(document, path, value)
            return WRONG if hop is WRONG else (hop,)
        if not value:
            return document.problem(path, f"this must not be empty: name {_FORM}")
        found = [self._hop(document, (*path, index), each) for index, each in enumerate(value)]
        hops = tuple(hop for hop in found if hop is not WRONG)
        seen: set[tuple[str, str | None]] = set()
        for index, hop in enumerate(found):
            key = None if hop is WRONG else (hop.place.name, hop.model)
            if key in seen:
                document.problem((*path, index), "this is already in the list")
            seen |= {key} if key is not None else set()
        return hops if len(hops) == len(found) else WRONG

    def _hop(self, document: Document, path: Path, value: Any) -> Any:
        if not isinstance(value, dict):
            return self._named(document, path, value)
        values = document.fields(path, value, self._fields, required=("to",))
        if "to" not in values:
            return WRONG
        hop: Hop = values["to"]
        return Hop(place=hop.place, model=hop.model, weight=values.get("weight"))

    def _named(self, document: Document, path: Path, value: Any) -> Any:
        """Read a hop: `place`, `place:model`, or a model in this process."""
        if not isinstance(value, str) or not value.strip():
            return document.problem(path, f"this must be {_FORM}")
        head, colon, model = (each.strip() for each in value.partition(":"))
        if head in OWN_KINDS:
            return self._in_this_process(document, path, head, model)
        place = self._place(document, path, head)
        if place is None:
            return self._unknown(document, path, head)
        if place is WRONG:
            return WRONG  # the problems of its table are already noted
        if (colon and not model) or "*" in model:
            return document.problem(path, f"this must be {_FORM}; patterns are not allowed here")
        return Hop(place=place, model=model or None)

    def _place(self, document: Document, path: Path, name: str) -> Any:
        found = self.places.get(name)
        if found is not None or name in document.tables("providers"):
            return found or WRONG
        provider = known_provider(name)
        if provider is None or provider.base_url is None:
            return None
        if provider.name not in self.places:
            self.places[provider.name] = place_of(provider, self._environ)
            missing = missing_variables(provider, self._environ)
            if missing and not is_own_server(provider):
                text = f"{provider.name} needs {', '.join(missing)}, which is not set"
                document.warn(path, text)
        return self.places[provider.name]

    def _unknown(self, document: Document, path: Path, name: str) -> Any:
        provider = known_provider(name)
        if provider is not None:
            text = f"{provider.name} has no default address: add a table with a base_url"
            return document.problem(path, text)
        names = (*self._own, *provider_names(), *OWN_KINDS)
        near = did_you_mean(name, names)
        text = f"there is no provider of that name{near}; valid names: {', '.join(names)}"
        return document.problem(path, text)

    def _in_this_process(self, document: Document, path: Path, kind: str, rest: str) -> Any:
        problem = _problem_of(kind, rest)
        if problem is not None:
            return document.problem(path, problem)
        url = f"{kind}:{rest}"
        place = self.places.setdefault(url, Place(name=url, model_url=url))
        return Hop(place=place)


def _problem_of(kind: str, rest: str) -> str | None:
    """Why a model in this process can't be used, or None."""
    if kind == "echo":
        return None
    if not rest:
        return f"this must name a {'model' if kind == 'local' else 'file'}, as in {kind}:NAME"
    try:
        if kind == "scripted":
            return None if FilePath(rest).is_file() else "there is no such file"
        from dragoman.transport.local.catalogue import found

        found(rest)
    except (DragomanError, OSError, ValueError, RuntimeError):  # RuntimeError: an unknown ~user
        return "there is no such model or file on this machine"
    return None
