"""`dragoman check`: check documents against a target's rules before sending them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.exit_codes import (
    BROKEN,
    EXIT_CODES,
    FOUND,
    INPUT,
    OK,
    Ending,
    clean_ending,
    complain,
    jobs_option,
)
from dragoman.cli.printing import json_option, wants_json

if TYPE_CHECKING:
    from dragoman.cli.checking import Checked

_MAX_ROWS = 500
_HEADERS = ("where", "rule", "severity", "path", "message")


@click.command(epilog=EXIT_CODES)
@click.argument("files", nargs=-1, required=True, type=INPUT, metavar="FILE...")
@click.option("--to", "--as", "target", required=True, metavar="TARGET",
              help="The target: a dialect, a provider, or provider:model.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Count warnings as errors.")
@jobs_option
@json_option
def check(
    files: tuple[str, ...], target: str, *, jobs: int, as_json: bool | None, strict: bool
) -> None:
    """Check requests and histories against a target's rules.

    A FILE holds one document, an array of documents, or one document on each line (JSONL); - is
    standard input. docs/reference/rules.md lists the rules. With --json, each finding is one line
    (JSONL).
    """
    with clean_ending():
        from dragoman.cli.checking import checked
        from dragoman.cli.documents import documents, size_of_files
        from dragoman.cli.screen import progress
        from dragoman.providers.documents.naming import Named

        Named(target)  # an unknown target is an error before any work begins
        is_json = wants_json(as_json)
        report = _Report(as_json=is_json)
        is_seen = is_json and sys.stdout.isatty()
        with progress(size_of_files(files), seen=is_seen) as advance:
            for found in checked(target, documents(files, advance), jobs):
                report.add(found)
        report.end()
        code = report.code(strict=strict)
        if code != OK:
            raise Ending(code)


class _Report:
    """The findings: as one table for people, or as JSON lines as they are found."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._rows: list[tuple[str, ...]] = []
        self._documents = 0
        self._broken = 0
        self._errors = 0
        self._warnings = 0

    def add(self, found: Checked) -> None:
        """Add the findings of a document."""
        self._documents += 1
        if found.problem is not None:
            self._broken += 1
            complain(f"{found.place}: {found.problem}")
        for violation in found.violations:
            is_error = violation.severity == "error"
            self._errors += is_error
            self._warnings += not is_error
            row = (violation.rule, violation.severity, violation.path, violation.message)
            if self._as_json:
                self._print_json(found, row)
            elif len(self._rows) < _MAX_ROWS:
                self._rows.append((found.place, *row))

    def _print_json(self, found: Checked, row: tuple[str, ...]) -> None:
        from dragoman.model.jsontext import dumps

        place = {"file": found.name, "line": found.line, "document": found.document}
        finding: dict[str, Any] = dict(zip(_HEADERS[1:], row, strict=True))
        click.echo(dumps(place | finding))

    def end(self) -> None:
        """Print the table, and the totals on standard error."""
        from dragoman.cli.screen import print_table

        if self._rows:
            print_table(_HEADERS, self._rows)
        more = self._errors + self._warnings - len(self._rows)
        if more and not self._as_json:
            complain(f"and {more} more; --json lists all")
        complain(
            f"{_counted(self._errors, 'error')} and {_counted(self._warnings, 'warning')}"
            f" in {_counted(self._documents, 'document')}"
        )

    def code(self, *, strict: bool) -> int:
        """The exit code."""
        if self._broken:
            return BROKEN
        return FOUND if self._errors or (strict and self._warnings) else OK


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
