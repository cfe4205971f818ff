"""`docs/reference/rules.md` lists all rules, and explains those that are not checked."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from dragoman.providers.registry import provider_names
from dragoman.wire.target import is_flag
from tests.corpus import Corpus
from tests.test_docs import ROOT
from tests.wire.refused import explaining, requests

PAGE = (ROOT / "docs" / "reference" / "rules.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src" / "dragoman"
_ROW = re.compile(
    r"^\| (\w+) \| (.+) \| (`[^|]+`) \| (error|warning|-) \| ([SDERT]+)(?:: ([a-z., ]+))? \|$",
    re.MULTILINE,
)
# By the name of the section: the folder of its rules, and its rule numbers.
_HOSTS = (58, 100, 105, *range(109, 120))
SECTIONS: dict[str, tuple[str | None, list[str]]] = {
    "openai-chat": ("openai_chat", [f"W{n}" for n in range(1, 20)]),
    "openai-chat-hosts": (
        "openai_chat",
        [*(f"W{n}" for n in _HOSTS), *(f"C{n}" for n in range(1, 5))],
    ),
    "openai-responses": ("openai_responses", [f"W{n}" for n in range(20, 40)]),
    "anthropic": ("anthropic", [f"W{n}" for n in range(40, 75)]),
    "gemini": ("gemini", [f"W{n}" for n in (*range(75, 100), 120)]),
    "ollama": ("ollama", [f"W{n}" for n in range(101, 109)]),
    "invariants": (None, [f"I{n}" for n in range(1, 16)]),
}
FOLDERS = sorted({folder for folder, _ in SECTIONS.values() if folder is not None})
_KINDS = ("shape", "limit", "I", "W", "C")


class Row(NamedTuple):
    """A line of a table."""

    number: str
    text: str
    enforced: list[str]
    severity: str
    evidence: str
    refused_by: tuple[str, ...]

    @property
    def is_checked(self) -> bool:
        """Whether `check` has the rule."""
        return self.severity != "-"

    @property
    def place(self) -> tuple[int, int]:
        """The row's sort key."""
        found = re.fullmatch(r"([IWC])(\d+)", self.number)
        kind, number = (found[1], int(found[2])) if found else (self.number, 0)
        return _KINDS.index(kind), number


def _section(name: str) -> str:
    parts = re.split(r"\n#{2,3} ", PAGE)
    (found,) = (part for part in parts if f"(`{name}`)" in part.splitlines()[0])
    return found


def _rows(name: str) -> list[Row]:
    return [
        Row(number, text, re.findall(r"`([^`]+)`", enforced), severity, evidence, _hosts(hosts))
        for number, text, enforced, severity, evidence, hosts in _ROW.findall(_section(name))
    ]


def _hosts(listed: str) -> tuple[str, ...]:
    return tuple(listed.split(", ")) if listed else ()


def _rules(folder: str) -> list[Any]:
    return list(import_module(f"dragoman.wire.{folder}.rules").RULES)


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_tables_have_every_rule(folder: str) -> None:
    """Function, number, severity and evidence equal the registered rules, in that order."""
    rows = [row for name, (own, _) in SECTIONS.items() if own == folder for row in _rows(name)]
    assert [
        (row.number, *row.enforced, row.severity, row.evidence, row.refused_by)
        for row in rows
        if row.is_checked
    ] == [
        (rule.number, rule.find.__name__, rule.severity, rule.evidence, rule.refused_by)
        for rule in _rules(folder)
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_repairs_require_observed_refusals(folder: str) -> None:
    """`refused_by` names known providers, with evidence, and flags are known flags."""
    for rule in _rules(folder):
        assert set(rule.refused_by) <= set(provider_names())
        assert not rule.refused_by or set(rule.evidence) & set("ET")
        assert all(map(is_flag, rule.flags))


@pytest.mark.parametrize("name", SECTIONS)
def test_the_tables_have_every_number(name: str) -> None:
    """Each numbered rule is checked, or the modules that enforce it are named."""
    rows = _rows(name)
    own = SECTIONS[name][1]
    assert {row.number for row in rows} >= set(own)
    # Rules of other sections apply to the dialect, too, so they are checked here.
    assert all(row.is_checked for row in rows if row.number not in own)
    assert [row.place for row in rows] == sorted(row.place for row in rows)
    lines = [line for line in _section(name).splitlines() if line.startswith("| ")]
    assert len(lines) == len(rows) + 1  # and the head


def test_the_catalogue_is_covered() -> None:
    """All 120 wire rules, the four of other vendors and the invariants are in a section."""
    numbers = [number for _, own in SECTIONS.values() for number in own]
    wanted = [f"W{n}" for n in range(1, 121)] + [f"C{n}" for n in range(1, 5)]
    assert set(numbers) == {*wanted, *(f"I{n}" for n in range(1, 16))}


@pytest.mark.parametrize("name", SECTIONS)
def test_unchecked_rules_are_explained(name: str) -> None:
    """The named modules exist, and the row says what the rule is about, or why not."""
    openings = ("about ", "can't be judged: ")
    for row in _rows(name):
        if not row.is_checked:
            assert all((SOURCE / module).is_file() for module in row.enforced), row.number
            is_told = row.text.startswith(openings) or ": see " in row.text
            assert is_told or name == "invariants", row.number


@pytest.mark.parametrize("name", SECTIONS)
def test_severity_follows_evidence(name: str) -> None:
    """An error needs more than reports; a warning with more evidence gives a reason."""
    for row in _rows(name):
        if row.severity == "error":
            assert set(row.evidence) & set("SDET"), row
        elif row.severity == "warning" and row.evidence != "R":
            assert ";" in row.text, row


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_rule_is_documented(folder: str) -> None:
    """Numbers are valid, docstrings exist, and no rule is registered twice."""
    rules = _rules(folder)
    assert all(rule.find.__doc__ for rule in rules)
    assert all(re.fullmatch(r"[IWC]\d+|shape|limit", rule.number) for rule in rules)
    assert len({rule.find for rule in rules}) == len(rules)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_function_is_registered(folder: str) -> None:
    """Every rule function is registered."""
    defined = {
        node.name
        for file in (SOURCE / "wire" / folder).glob("*rules.py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and re.match(r"([iwc]\d+|shape|limit)_", node.name)
    }
    assert defined <= {rule.find.__name__ for rule in _rules(folder)}


def test_every_flag_is_documented() -> None:
    """All target flags that rules use are in the table."""
    wire = SOURCE / "wire"
    files = [file for folder in FOLDERS for file in (wire / folder).glob("rules*.py")]
    asked = {
        name
        for file in [*files, *wire.glob("*rules.py")]
        for name in re.findall(r"\btarget\.(\w+\.\w+)", file.read_text(encoding="utf-8"))
        if is_flag(name)
    }
    assert {"turns.takes_developer", "turns.prefill", "thinking.efforts"} <= asked
    assert all(f"`target.{name}`" in PAGE for name in asked)


def test_every_flag_has_a_docstring() -> None:
    """Each flag has a docstring."""
    source = SOURCE / "wire" / "flags.py"
    bare = {
        node.target.id
        for group in ast.parse(source.read_text(encoding="utf-8")).body
        if isinstance(group, ast.ClassDef) and group.name.endswith("Flags")
        for node, after in pairwise(group.body)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        if not (isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant))
    }
    assert bare == set()


@pytest.mark.corpus
@pytest.mark.extended
def test_the_page_has_the_corpus_figures(corpus: Corpus) -> None:
    """The page has the current number of explained refusals."""
    found = [bool(explaining(one)) for one in requests(corpus, accepted=False, tier="extended")]
    said = f"Of the {len(found)} recorded requests that were refused, {sum(found)} have an error"
    assert said in " ".join(PAGE.split())
