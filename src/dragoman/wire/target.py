"""What differs between the deployments and models of one dialect."""

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
    """The facts about a target that decide how a request has to look.

    Each dialect has one for its vendor's own deployment; providers and models are variations of
    it. Wire code asks these flags, never for a provider's name.

    >>> target = Target(dialect="openai-chat", turns=TurnFlags(takes_developer=False))
    >>> target.with_flags({"turns.alternates_roles": True}).turns.takes_developer
    False
    """

    dialect: str
    provider: str | None = None
    model: str | None = None
    is_strict: bool = demand(True, relaxed=False)  # noqa: FBT003 - a default
    """Whether it is believed to refuse what the rules say; where it is not, what is given is
    sent, and nothing is added."""
    is_described: bool = True
    """Whether its flags come from somebody who knows the host; not where they are put together from
    documentation, and nobody was seen to be refused there."""
    keeps_own_messages: bool = False
    """Whether messages that came in this dialect stay as they came, among others that are fitted:
    nobody knows that the host refuses them."""
    unsupported_part_fields: tuple[str, ...] = ()
    """The fields of parts that have no place on the wire, such as `Image.name`."""
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
        """A copy with these flags changed, each named with its group: `turns.pairs_results`."""
        fields: dict[str, Any] = {}
        groups: dict[str, dict[str, Any]] = {}
        for name, value in changes.items():
            group, _, flag = name.rpartition(".")
            (groups.setdefault(group, {}) if group else fields)[flag] = value
        for group, flags in groups.items():
            if group not in GROUPS:
                msg = f"a target has no such group of flags; there are {', '.join(GROUPS)}"
                raise InvalidInputError(msg)
            fields[group] = _replaced(getattr(self, group), flags)
        return _replaced(self, fields)

    def flag(self, name: str) -> Any:
        """The value of a flag that is named with its group."""
        try:
            return attrgetter(name)(self)
        except AttributeError:
            pass
        msg = "a target has no such flag; write its group and its name: turns.pairs_results"
        raise InvalidInputError(msg)

    def has_made(self, origin: Origin | None) -> bool:
        """Whether opaque state of this origin may go back to it (W54, W86).

        It was made here, as far as both know provider and model, or put there by hand.
        """
        if origin is None:
            return True
        if origin.dialect != self.dialect:
            return False
        if None not in (origin.provider, self.provider) and origin.provider != self.provider:
            return False
        return origin.model is None or self.model is None or is_same_model(origin.model, self.model)

    def owns(self, message: Message) -> bool:
        """Whether a message came in a request of this dialect, and nobody has changed it since.

        An edit takes the mark away (`Message.replace`). An answer has more to its origin: whatever
        became of the conversation since, it is fitted. So is what was meant for another model
        (`Request.replace`).
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
    def findings(self) -> dict[int, Any]:
        """What follows from its flags, found once for all requests; see `asked_steps`."""
        return {}

    def limited_to(self, demands: Collection[str], vendor: Self) -> Self:
        """The target for what came in its dialect: it refuses what these flags say, no more.

        Everything else is as at the dialect's vendor, relaxed: so what came is spelled as it came.
        """
        limited = vendor.relaxed.replace(provider=self.provider, model=self.model, host=self.host)
        if not demands:
            return limited
        return limited.with_flags({name: self.flag(name) for name in demands})


def _replaced(flags: F, changes: dict[str, Any]) -> F:
    """As `Value.replace`; a target is made for each request, so names are looked up once."""
    try:
        return structs.replace(flags, **changes)
    except TypeError:
        pass
    return flags.replace(**changes)  # which says what there is, without quoting


_ANY = Target(dialect="")
GROUPS = tuple(name for name in _ANY.__struct_fields__ if isinstance(_ANY.flag(name), Flags))
"""The names of the groups of flags."""


def is_flag(name: str) -> bool:
    """Whether targets have a flag of this name, such as `turns.pairs_results`."""
    group, _, flag = name.rpartition(".")
    if group and group not in GROUPS:
        return False
    return flag in (_ANY.flag(group) if group else _ANY).__struct_fields__


def is_same_model(one: str, other: str) -> bool:
    """Whether two names are one model's: the same, or with a date behind it."""
    return one.startswith(other) or other.startswith(one)
