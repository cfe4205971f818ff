"""A dialect's rules, each with examples that break it and examples that don't.

Each dialect's `test_rules` defines a `Book` of them; `tests/wire/test_rules.py` runs them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple

import dragoman
from dragoman.wire.target import Target
from dragoman.wire.violations import Rule, Violation

Row = tuple[dict[str, Any], str, dict[str, Any]]
"""A body that breaks a rule, where that is said, and a body that is close to it and does not."""


class Case(NamedTuple):
    """An example for a rule."""

    name: str
    wrong: dict[str, Any]
    path: str
    right: dict[str, Any]


@dataclass(frozen=True)
class Book:
    """The examples of one dialect."""

    dialect: str
    rows: Mapping[str, list[Row]]
    usual: Target | None = None
    """The target that rows are for, unless `targets` names another; None: the vendor's own."""
    targets: Mapping[str, Target] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """Its folder in `dragoman.wire`."""
        return self.dialect.replace("-", "_")

    @property
    def rules(self) -> list[Rule[Any]]:
        """The registered rules."""
        return list(import_module(f"dragoman.wire.{self.folder}.rules").RULES)

    @property
    def cases(self) -> Iterator[Case]:
        """All examples."""
        return (Case(name, *row) for name, rows in self.rows.items() for row in rows)

    def target(self, name: str) -> Target | None:
        """The target for the examples of a rule."""
        return self.targets.get(name, self.usual)

    def check(self, body: Any, target: Target | None = None) -> list[Violation]:
        """The findings of all rules."""
        speaker: Any = dragoman.dialect(self.dialect)
        found: list[Violation] = speaker.check(body, target=target)
        return found

    def found(self, name: str, body: Any, target: Target | None = None) -> list[str]:
        """The paths that one rule finds, which `check` has to report as well."""
        (rule,) = (rule for rule in self.rules if rule.find.__name__ == name)
        rulebook = import_module(f"dragoman.wire.{self.folder}.rules").RULEBOOK
        vendors = import_module(f"dragoman.wire.{self.folder}.dialect").TARGET
        meant = target or self.target(name)
        # Only OpenAI's Chat has rules that depend on whether a target is named.
        judged = meant if self.dialect == "openai-chat" else meant or vendors
        view = rulebook.view(body, judged, None, None)
        findings = list(rule.find(view))
        reported = self.check(body, meant)
        assert all(Violation(rule.number, rule.severity, *one) in reported for one in findings)
        return [path for path, _ in findings]
