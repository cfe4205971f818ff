"""What is known of a place that speaks a dialect: addresses, keys, flags and its models' ways."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from msgspec.structs import force_setattr

from dragoman.errors import ConfigError, InvalidInputError
from dragoman.model.frozen import EMPTY, FrozenDict
from dragoman.model.value import Value, expect, expect_fields, own_tuple
from dragoman.providers.endpoints import USUAL, Endpoints
from dragoman.wire.target import Target, is_flag


def _own_map(value: Value, name: str, kind: type) -> None:
    """Make the field `name` a frozen mapping from names to values of that kind."""
    given = getattr(value, name)
    what = f"{type(value).__name__}.{name}"
    expect(given, Mapping, what)
    for key, item in given.items():
        expect(key, str, f"a key of {what}")
        expect(item, kind, f"a value of {what}")
    force_setattr(value, name, FrozenDict(given))


class Auth(Value, frozen=True):
    """How a key is shown: the header, and the word before the key."""

    header: str = "Authorization"
    scheme: str | None = "Bearer"

    def headers(self, key: str) -> dict[str, str]:
        """The header with a key in it."""
        return {self.header: key if self.scheme is None else f"{self.scheme} {key}"}


BEARER = Auth()


class Family(Value, frozen=True):
    """What is different about some models: their targets' flags, by a pattern of their names.

    >>> Family("o[1-9]", {"thinking.form": "effort"}).covers("o3-mini")
    True
    """

    pattern: str
    """A regular expression for the beginning of the name."""
    changes: Mapping[str, Any]
    dialect: str | None = None
    """The dialect that it is about; None: any."""

    def __post_init__(self) -> None:
        expect(self.pattern, str, "Family.pattern")
        expect_fields(self, dialect=str)
        _own_map(self, "changes", object)
        if not all(map(is_flag, self.changes)):
            msg = "Family.changes names a flag that no Target has"
            raise InvalidInputError(msg)
        try:
            _compiled(self.pattern)
        except re.error:
            msg = "Family.pattern is no regular expression"
            raise InvalidInputError(msg) from None

    def covers(self, model: str) -> bool:
        """Whether a model is one of them."""
        return _compiled(self.pattern).match(model) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


class Provider(Value, frozen=True, gc=True):
    """A place that speaks one or several dialects.

    >>> acme = Provider("acme", (Target(dialect="openai-chat"),), "https://api.acme.example/v1")
    >>> acme.target("large").model
    'large'
    """

    name: str
    targets: tuple[Target, ...]
    """One for each dialect; the first is the one to use where nobody says which."""
    base_url: str | None = None
    """What stands before every path; what is in braces is filled in. None: the user says."""
    auth: Auth | None = BEARER
    """How a key is shown; None: there are no keys."""
    keys: tuple[str, ...] = ()
    """The environment variables that may hold the key, the best one first."""
    headers: Mapping[str, str] = EMPTY
    """Further headers of every request."""
    families: tuple[Family, ...] = ()
    """What is different about some models; all rows that cover a model count, the last one most."""
    routes: Mapping[str, str] = EMPTY
    """By a pattern of the model's name: the dialect it speaks, where that is not the first."""
    endpoints: Mapping[str, Endpoints] = EMPTY
    """By dialect: paths that are not as usual."""
    parameters: Mapping[str, tuple[str, ...]] = EMPTY
    """What has to be filled into addresses, by name, and the environment variables for it."""
    defaults: Mapping[str, str] = EMPTY
    """What is filled in where nobody says otherwise."""
    aliases: tuple[str, ...] = ()
    """Other names that people use."""
    prefixes: tuple[str, ...] = ()
    """What may stand before a model's name there, and adds nothing, such as Google's `models/`."""

    def __post_init__(self) -> None:
        expect(self.name, str, "Provider.name")
        own_tuple(self, "targets", Target)
        own_tuple(self, "families", Family)
        own_tuple(self, "keys", str)
        own_tuple(self, "aliases", str)
        own_tuple(self, "prefixes", str)
        for name in ("headers", "routes", "defaults"):
            _own_map(self, name, str)
        _own_map(self, "endpoints", Endpoints)
        _own_map(self, "parameters", tuple)
        expect_fields(self, base_url=str, auth=Auth)
        if not self.name or ":" in self.name or not self.targets:
            msg = "a provider has a name without a colon, and at least one target"
            raise InvalidInputError(msg)

    @property
    def dialects(self) -> tuple[str, ...]:
        """The dialects that it speaks."""
        return tuple(target.dialect for target in self.targets)

    def dialect_of(self, model: str | None = None) -> str:
        """The dialect in which to speak to a model."""
        named = self._bare(model)
        for pattern, dialect in self.routes.items() if named is not None else ():
            if _compiled(pattern).match(named or ""):
                return dialect
        return self.targets[0].dialect

    def _bare(self, model: str | None) -> str | None:
        """A model's name without what may stand before it."""
        if model is None:
            return None
        found = next((prefix for prefix in self.prefixes if model.startswith(prefix)), "")
        return model.removeprefix(found) or model

    def target(self, model: str | None = None, dialect: str | None = None) -> Target:
        """The facts about one of its models, or about all of them where none is named."""
        model = self._bare(model)
        spoken = dialect or self.dialect_of(model)
        base = next((target for target in self.targets if target.dialect == spoken), None)
        if base is None:
            msg = f"{self.name} does not speak that dialect; it speaks {', '.join(self.dialects)}"
            raise ConfigError(msg)
        changes: dict[str, Any] = {"provider": self.name, "model": model}
        for family in self.families if model is not None else ():
            if family.dialect in {None, spoken} and family.covers(model or ""):
                changes |= family.changes
        return base.with_flags(changes)

    def url(
        self,
        endpoint: str = "generate",
        *,
        model: str | None = None,
        dialect: str | None = None,
        base_url: str | None = None,
        parameters: Mapping[str, str] = EMPTY,
    ) -> str:
        """The whole address of an endpoint: `generate`, `stream`, `embed`, `count` or `models`."""
        model = self._bare(model)
        spoken = dialect or self.dialect_of(model)
        base, paths = base_url or self.base_url, self.endpoints.get(spoken) or USUAL.get(spoken)
        path = getattr(paths, endpoint, None)
        if endpoint == "stream" and path is None:
            path = getattr(paths, "generate", None)
        if base is None or path is None:
            msg = f"{self.name} has no address for that; name a base_url or another endpoint"
            raise ConfigError(msg)
        given = {**self.defaults, **parameters}
        if model is not None:
            given["model"] = model
        filled = {name: quote(value, safe="@") for name, value in given.items()}
        try:
            return f"{base.rstrip('/')}{path}".format_map(filled)
        except KeyError as missing:
            msg = f"the address of {self.name} needs {missing.args[0]}"
        except (ValueError, IndexError, AttributeError):
            msg = f"the address of {self.name} has a brace that names nothing"
        raise ConfigError(msg)

    def _sizes(self) -> Iterator[str]:
        yield self.name
        yield from self.dialects
