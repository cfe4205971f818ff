"""Roles: five values, their numbers, and the names they go by."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InvalidInputError
from dragoman.model.roles import Role

NUMBERS = {"system": 0, "user": 1, "assistant": 2, "tool": 3, "developer": 4}


def test_there_are_five_roles_with_fixed_numbers() -> None:
    """Names and numbers are part of stored data: neither may change, and none is unused."""
    assert {role.value: role.number for role in Role} == NUMBERS
    assert {role.value: int(role) for role in Role} == NUMBERS


@pytest.mark.parametrize("role", Role)
def test_the_value_is_lower_case_on_the_wire(role: Role) -> None:
    """A role is its own lowercase name, in JSON too."""
    assert role == role.value == role.name.lower()
    assert json.dumps(role) == f'"{role.value}"'


@given(st.sampled_from(Role), st.data())
def test_parse_takes_any_case(role: Role, data: st.DataObject) -> None:
    """A role's name in any mixture of cases is that role."""
    upper = data.draw(st.lists(st.booleans(), min_size=9, max_size=9))
    spelt = "".join(
        letter.upper() if up else letter for letter, up in zip(role.value, upper, strict=False)
    )
    assert Role.parse(spelt) is role


@pytest.mark.parametrize(("name", "role"), [
    ("model", Role.ASSISTANT), ("AI", Role.ASSISTANT), ("Human", Role.USER),
    ("function", Role.TOOL), (Role.DEVELOPER, Role.DEVELOPER),
])  # fmt: skip
def test_parse_knows_other_names(name: str, role: Role) -> None:
    """Other systems' names for the roles are known, and a role is itself."""
    assert Role.parse(name) is role


@pytest.mark.parametrize("name", ["", "robot", " user", "user ", "users", None, 1])
def test_parse_refuses_unknown_names(name: Any) -> None:
    """Unknown is unknown: nothing is trimmed or guessed."""
    with pytest.raises(InvalidInputError, match="unknown role"):
        Role.parse(name)


@pytest.mark.parametrize("role", Role)
def test_is_system_means_it_instructs_the_model(role: Role) -> None:
    """System and developer instruct, the others don't."""
    assert role.is_system is (role in {Role.SYSTEM, Role.DEVELOPER})


def test_one_of_takes_members_and_names() -> None:
    """A role is compared with several at once, however they are spelt."""
    assert Role.USER.one_of(Role.ASSISTANT, "Human")
    assert not Role.USER.one_of("model", Role.TOOL)
    assert not Role.USER.one_of()


@pytest.mark.parametrize(("given", "expected"), [
    ("user", (Role.USER,)),
    (Role.TOOL, (Role.TOOL,)),
    (["model", Role.USER, "user"], (Role.ASSISTANT, Role.USER, Role.USER)),
    ((), ()),
])  # fmt: skip
def test_normalize_makes_a_tuple_of_roles(given: Any, expected: tuple[Role, ...]) -> None:
    """One or many, names or members: a tuple of roles in the same order."""
    assert Role.normalize(given) == expected


def test_normalize_refuses_unknown_names() -> None:
    """One unknown name among known ones is an error."""
    with pytest.raises(InvalidInputError, match="unknown role"):
        Role.normalize(["user", "robot"])
