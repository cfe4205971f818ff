"""`docs/rules.md` lists the rules that there are, and says why others are not."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import pytest

from tests.test_docs import ROOT

PAGE = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\w+) \| .+ \| (?:`(\w+)`|-) \| (error|warning|-) \|$", re.MULTILINE)
DIALECTS = {"openai-chat": ("openai_chat", range(1, 20)), "anthropic": ("anthropic", range(40, 75))}


def _section(dialect: str) -> str:
    (found,) = (part for part in PAGE.split("\n## ") if f"(`{dialect}`)" in part.splitlines()[0])
    return found


def _rules(folder: str) -> list[Any]:
    return list(import_module(f"dragoman.wire.{folder}.rules").RULES)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_table_has_every_rule(dialect: str) -> None:
    """Function, number and severity are as registered, in the order of registration."""
    rules = _rules(DIALECTS[dialect][0])
    registered = [(rule.number, rule.find.__name__, rule.severity) for rule in rules]
    assert [row for row in ROW.findall(_section(dialect)) if row[1]] == registered


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_table_has_every_number(dialect: str) -> None:
    """Each rule of the catalogue is enforced, or there is a reason why not."""
    numbers = [number for number, _, _ in ROW.findall(_section(dialect))]
    assert set(numbers) - {"shape", "limit"} == {f"W{n}" for n in DIALECTS[dialect][1]}
    lines = [line for line in _section(dialect).splitlines() if line.startswith("| ")]
    assert len(lines) == len(numbers) + 1  # and the head


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_rule_says_what_it_is(dialect: str) -> None:
    """Names are numbers or kinds, docstrings are there, and none is registered twice."""
    rules = _rules(DIALECTS[dialect][0])
    assert all(rule.find.__doc__ for rule in rules)
    assert all(re.fullmatch(r"W\d+|shape|limit", rule.number) for rule in rules)
    assert len({rule.find for rule in rules}) == len(rules)


def test_every_flag_is_documented() -> None:
    """The flags that rules ask a target for are in the docstring and in the table."""
    source = ROOT / "src" / "dragoman" / "wire"
    asked = {
        name
        for folder, _ in DIALECTS.values()
        for file in (source / folder).glob("*rules.py")
        for name in re.findall(r'flag\(view\.target, "(\w+)"\)', file.read_text(encoding="utf-8"))
    }
    from dragoman.wire.violations import flag

    assert asked
    assert all(f"`{name}`" in (flag.__doc__ or "") for name in asked)
    assert all(f"`target.{name}`" in PAGE for name in asked)
