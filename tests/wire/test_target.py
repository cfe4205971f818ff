"""Flags are grouped; each declares its rules and its relaxed value."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import pytest

import dragoman
from dragoman.errors import InvalidInputError
from dragoman.providers.provider import Family
from dragoman.wire.flags import HostFlags, TurnFlags
from dragoman.wire.target import GROUPS, Target, is_flag

ANY = Target(dialect="any")
ALL = [f"{group}.{flag}" for group in GROUPS for flag in ANY.flag(group).__struct_fields__]
NUMBER = re.compile(r"[IWC]\d+")


def _demand(name: str) -> Any:
    group, _, flag = name.rpartition(".")
    return type(ANY.flag(group)).demands.get(flag)


def test_one_flag_can_be_changed() -> None:
    """The other flags of its group are unchanged."""
    target = Target(dialect="any", turns=TurnFlags(takes_developer=False))
    varied = target.with_flags({"turns.alternates_roles": True, "model": "m"})
    assert (varied.turns.alternates_roles, varied.turns.takes_developer) == (True, False)
    assert varied.model == "m"
    assert not target.turns.alternates_roles


@pytest.mark.parametrize(
    "name", ["turns.pears_results", "turn.pairs_results", "pairs_results", "turns", "a.b.c", ""]
)
def test_a_misspelled_flag_raises(name: str) -> None:
    """Every function that takes flags raises our own error."""
    if name != "turns":
        with pytest.raises(InvalidInputError):
            ANY.with_flags({name: True})
        with pytest.raises(InvalidInputError):
            Family("m", {name: True})
        assert not is_flag(name)
    with pytest.raises(InvalidInputError):
        ANY.turns.replace(pears_results=True)


@pytest.mark.parametrize("name", ALL)
def test_relaxed_targets_have_no_requirements(name: str) -> None:
    """Each flag has its declared relaxed value; facts are unchanged."""
    for dialect in dragoman.dialects():
        target = dragoman.dialect(dialect).target
        demand = _demand(name)
        expected = target.flag(name) if demand is None else demand.relaxed
        assert target.relaxed.flag(name) == expected
        assert is_flag(name)
        assert not target.relaxed.is_strict


def test_a_target_can_be_limited_to_some_requirements() -> None:
    """Other flags are the vendor's, apart from provider, model and host."""
    vendor = Target(dialect="any", provider="vendor")
    target = Target(
        dialect="any",
        provider="acme",
        model="m",
        turns=TurnFlags(alternates_roles=True, answers_results=True),
        host=HostFlags(ends_with_done=False),
    )
    limited = target.limited_to({"turns.alternates_roles"}, vendor)
    assert (limited.turns.alternates_roles, limited.turns.answers_results) == (True, False)
    assert (limited.provider, limited.model, limited.host) == ("acme", "m", target.host)
    assert not limited.is_strict


@pytest.mark.parametrize("dialect", dragoman.dialects())
def test_rules_and_flags_refer_to_each_other(dialect: str) -> None:
    """The flags of a rule exist, and one of them names the rule."""
    rulebook = import_module(f"dragoman.wire.{dialect.replace('-', '_')}.rules").RULEBOOK
    for rule in rulebook.rules:
        assert all(map(is_flag, rule.flags)), rule.number
        demands = [found for found in map(_demand, rule.flags) if found is not None]
        if demands and NUMBER.fullmatch(rule.number):
            assert any(rule.number in found.rules for found in demands), rule.number
