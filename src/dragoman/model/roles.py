"""`Role`: who sent a message."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Never

from dragoman.errors import InvalidInputError


class Role(StrEnum):
    """The role of a message. The value is the lowercase wire name."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    DEVELOPER = "developer"

    # Enum's own __hash__ is slow Python code; a role equals its value, so it must hash like it.
    __hash__ = str.__hash__

    @property
    def number(self) -> int:
        """A fixed integer: system 0, user 1, assistant 2, tool 3, developer 4."""
        return _NUMBERS[self]

    def __int__(self) -> int:
        return _NUMBERS[self]

    @property
    def is_system(self) -> bool:
        """Whether it is `system` or `developer`, which both hold instructions."""
        return self is Role.SYSTEM or self is Role.DEVELOPER

    def one_of(self, *roles: Role | str) -> bool:
        """Whether this is one of `roles`."""
        return self in Role.normalize(roles)

    @classmethod
    def _missing_(cls, value: object) -> Never:
        # The value may be any text a caller mistook for a role, so it is not quoted.
        msg = (
            f"unknown role of type {type(value).__name__};"
            " expected system, developer, user, assistant or tool"
        )
        raise InvalidInputError(msg)

    @classmethod
    def parse(cls, value: Role | str) -> Role:
        """The role of a name, case-insensitive; also accepts `model`, `ai`, `human`, `function`.

        >>> Role.parse("Model")
        <Role.ASSISTANT: 'assistant'>
        """
        given: object = value
        if given.__class__ is str and given in _BY_NAME:
            return _BY_NAME[given]
        if isinstance(value, Role):
            return value
        found = _BY_NAME.get(given.lower()) if isinstance(given, str) else None
        return cls._missing_(value) if found is None else found

    @classmethod
    def normalize(cls, roles: Role | str | Iterable[Role | str]) -> tuple[Role, ...]:
        """Converts one or several names or members to a tuple of roles."""
        if isinstance(roles, str):
            return (cls.parse(roles),)
        return tuple(cls.parse(role) for role in roles)


_NUMBERS = {role: number for number, role in enumerate(Role)}
_BY_NAME: dict[str, Role] = {
    **{role.value: role for role in Role},
    "model": Role.ASSISTANT,
    "ai": Role.ASSISTANT,
    "human": Role.USER,
    "function": Role.TOOL,
}
