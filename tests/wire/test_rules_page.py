"""`docs/rules.md` lists the rules that there are, and says why others are not."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from itertools import pairwise
from typing import Any

import pytest

from dragoman.wire.target import Target
from tests.test_docs import ROOT

PAGE = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\w+) \| .+ \| (?:`(\w+)`|-) \| (error|warning|-) \|$", re.MULTILINE)
DIALECTS = {
    "openai-chat": ("openai_chat", range(1, 20)),
    "openai-responses": ("openai_responses", range(20, 40)),
    "anthropic": ("anthropic", range(40, 75)),
    "gemini": ("gemini", range(75, 100)),
    "ollama": ("ollama", range(101, 109)),
}


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
    own = {f"W{n}" for n in DIALECTS[dialect][1]}
    assert set(numbers) >= own
    # Those from elsewhere are about hosts that speak the dialect, too.
    others = [row for row in ROW.findall(_section(dialect)) if row[0].upper() == row[0]]
    assert all(row[1] for row in others if row[0] not in own)
    lines = [line for line in _section(dialect).splitlines() if line.startswith("| ")]
    assert len(lines) == len(numbers) + 1  # and the head


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_rule_says_what_it_is(dialect: str) -> None:
    """Names are numbers or kinds, docstrings are there, and none is registered twice."""
    rules = _rules(DIALECTS[dialect][0])
    assert all(rule.find.__doc__ for rule in rules)
    assert all(re.fullmatch(r"[WC]\d+|shape|limit", rule.number) for rule in rules)
    assert len({rule.find for rule in rules}) == len(rules)


def test_every_flag_is_documented() -> None:
    """The flags that rules ask a target for are flags of targets, and in the table."""
    source = ROOT / "src" / "dragoman" / "wire"
    asked = {
        name
        for folder, _ in DIALECTS.values()
        for file in (source / folder).glob("*rules.py")
        for name in re.findall(r"\btarget\.(\w+)", file.read_text(encoding="utf-8"))
    } & set(Target.__struct_fields__)
    assert {"takes_developer", "prefill"} <= asked
    assert all(f"`target.{name}`" in PAGE for name in asked)


def test_every_flag_says_what_it_is() -> None:
    """Each field of a target has a docstring, but those that its name says it all about."""
    source = ROOT / "src" / "dragoman" / "wire" / "target.py"
    (body,) = (
        node.body
        for node in ast.parse(source.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    )
    bare = {
        node.target.id
        for node, after in pairwise(body)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        if not (isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant))
    }
    assert bare == {"dialect", "provider", "model", "tool_name_length"}
