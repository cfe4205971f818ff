"""`Target`: the differences between deployments and models of one dialect."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from operator import attrgetter
from typing import Any, Self, TypeVar

from msgspec import structs

from dragoman.errors import InvalidInputError
from dragoman.model.messages import Message
from dragoman.model.parts import Origin
from dragoman.wire.flags import (
    CacheFlags,
    FieldFlags,
    Flags,
    HostFlags,
    IdFlags,
    MediaFlags,
    SamplingFlags,
    SchemaFlags,
    StateFlags,
    ThinkingFlags,
    ToolFlags,
    TurnFlags,
    demand,
)

F = TypeVar("F", bound=Flags)


class Target(Flags, frozen=True, kw_only=True):
    """The facts about a deployment and model that determine how a request is encoded.

    Each dialect has one for its vendor's own deployment; providers and models are variations of
    it. Wire code checks these flags, never a provider's name.

    >>> target = Target(dialect="openai-chat", turns=TurnFlags(takes_developer=False))
    >>> target.with_flags({"turns.alternates_roles": True}).turns.takes_developer
    False
    """

    dialect: str
    provider: str | None = None
    model: str | None = None
    is_strict: bool = demand(True, relaxed=False)  # noqa: FBT003 - a default
    """Whether it is assumed to refuse what the rules list; if not, requests are sent as given, and
    nothing is added."""
    is_described: bool = True
    """Whether its flags were defined for this host; false if they were only derived from
    documentation, without an observed refusal."""
    keeps_own_messages: bool = False
    """Whether messages that came in this dialect are kept unchanged among others that are fitted,
    because the host is not known to refuse them."""
    unsupported_part_fields: tuple[str, ...] = ()
    """The fields of parts that the wire doesn't have, such as `Image.name`; empty: those that no
    row of its dialect is about."""
    ids: IdFlags = IdFlags()
    tools: ToolFlags = ToolFlags()
    turns: TurnFlags = TurnFlags()
    thinking: ThinkingFlags = ThinkingFlags()
    sampling: SamplingFlags = SamplingFlags()
    media: MediaFlags = MediaFlags()
    schemas: SchemaFlags = SchemaFlags()
    state: StateFlags = StateFlags()
    cache: CacheFlags = CacheFlags()
    fields: FieldFlags = FieldFlags()
    host: HostFlags = HostFlags()

    def with_flags(self, changes: Mapping[str, Any]) -> Self:
        """A copy with these flags changed; keys include the group: `turns.pairs_results`."""
        fields: dict[str, Any] = {}
        groups: dict[str, dict[str, Any]] = {}
        for name, value in changes.items():
            group, _, flag = name.rpartition(".")
            (groups.setdefault(group, {}) if group else fields)[flag] = value
        for group, flags in groups.items():
            if group not in GROUPS:
                msg = f"unknown group of target flags; available: {', '.join(GROUPS)}"
                raise InvalidInputError(msg)
            fields[group] = _replaced(getattr(self, group), flags)
        return _replaced(self, fields)

    def flag(self, name: str) -> Any:
        """The value of a flag; the name includes its group."""
        try:
            return attrgetter(name)(self)
        except AttributeError:
            pass
        msg = "unknown target flag; include its group, as in turns.pairs_results"
        raise InvalidInputError(msg)

    def has_made(self, origin: Origin | None) -> bool:
        """Whether opaque state of this origin may be sent back to it (W54, W86).

        True if provider and model match as far as both are known, or if the state has no origin.
        """
        if origin is None:
            return True
        if origin.dialect != self.dialect:
            return False
        if None not in (origin.provider, self.provider) and origin.provider != self.provider:
            return False
        return origin.model is None or self.model is None or is_same_model(origin.model, self.model)

    def owns(self, message: Message) -> bool:
        """Whether a message came in a request of this dialect and was not edited since.

        An edit removes the marker (`Message.replace`). A response has a more detailed origin: it is
        always fitted, whatever became of the conversation. So is a message that was meant for
        another model (`Request.replace`).
        """
        origin = message.origin
        if origin is None or origin.dialect != self.dialect or not origin.is_of_a_request:
            return False
        return origin.model is None or self.model is None or is_same_model(origin.model, self.model)

    @cached_property
    def keeping_own_messages(self) -> Self:
        """The same target, for a conversation of which only some messages came in the dialect."""
        return self.replace(keeps_own_messages=True)

    @cached_property
    def findings(self) -> dict[Any, Any]:
        """A cache of what follows from its flags, shared by all requests; see `steps_for`."""
        return {}

    def limited_to(self, demands: Collection[str], vendor: Self) -> Self:
        """The target for a request that came in its dialect: only these requirements apply.

        Everything else is as for the dialect's vendor, relaxed, so that the request keeps its
        original spelling.
        """
        limited = vendor.relaxed.replace(provider=self.provider, model=self.model, host=self.host)
        if not demands:
            return limited
        return limited.with_flags({name: self.flag(name) for name in demands})


def _replaced(flags: F, changes: dict[str, Any]) -> F:
    """Like `Value.replace`, but faster: a target is created for each request."""
    try:
        return structs.replace(flags, **changes)
    except TypeError:
        pass
    return flags.replace(**changes)  # its error lists the valid names, without quoting


_ANY = Target(dialect="")
GROUPS = tuple(name for name in _ANY.__struct_fields__ if isinstance(_ANY.flag(name), Flags))
"""The names of the flag groups."""


def is_flag(name: str) -> bool:
    """Whether targets have a flag of this name, such as `turns.pairs_results`."""
    group, _, flag = name.rpartition(".")
    if group and group not in GROUPS:
        return False
    return flag in (_ANY.flag(group) if group else _ANY).__struct_fields__


def is_same_model(one: str, other: str) -> bool:
    """Whether two names mean the same model: equal, or one has a date suffix."""
    return one.startswith(other) or other.startswith(one)
