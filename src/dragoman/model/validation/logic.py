"""JSON Schema keywords that combine schemas: references, alternatives and conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.validation.checks import Check, Checker, Found
from dragoman.model.validation.words import Problem, alternatives, in_words, kind_of


def _ref(run: Checker, reference: Any, value: Any, _schema: Mapping[str, Any], path: str) -> Found:
    yield from run.referred(reference, value, path)


def _all(run: Checker, schemas: Any, value: Any, _schema: Mapping[str, Any], path: str) -> Found:
    for schema in schemas if isinstance(schemas, list) else ():
        yield from run.check(schema, value, path)


def _any(run: Checker, schemas: Any, value: Any, _schema: Mapping[str, Any], path: str) -> Found:
    failed: list[list[Problem]] = []
    for schema in schemas if isinstance(schemas, list) else ():
        found = run.first(schema, value, path)
        if not found:
            return
        failed.append(found)
    if failed:
        yield from _none_fits(run, schemas, failed, value, path)


def _one(run: Checker, schemas: Any, value: Any, _schema: Mapping[str, Any], path: str) -> Found:
    if not isinstance(schemas, list) or not schemas:
        return
    found = [run.first(schema, value, path) for schema in schemas]
    fitting = found.count([])
    if fitting == 0:
        yield from _none_fits(run, schemas, found, value, path)
    elif fitting > 1:
        words = f"exactly one of {_alternatives(run, schemas)}"
        yield Problem(path, words, f"a match for {fitting} of them", "oneOf")


def _none_fits(
    run: Checker, schemas: list[Any], failed: list[list[Problem]], value: Any, path: str
) -> Found:
    """The problems of the alternative that was probably meant, or a list of all alternatives."""
    meant = [found for found in failed if not any(_rules_out(each, path) for each in found)]
    if len(meant) == 1:
        yield from meant[0]
    else:
        yield Problem(path, _alternatives(run, schemas), kind_of(value), "anyOf")


def _rules_out(problem: Problem, path: str) -> bool:
    """Whether the value was probably not meant for this alternative: wrong type or tag."""
    is_here = problem.path == path and problem.keyword in {"type", "anyOf"}
    return is_here or problem.keyword in {"const", "enum"}


def _alternatives(run: Checker, schemas: list[Any]) -> str:
    def resolved(schema: Any) -> Any:
        is_reference = isinstance(schema, Mapping) and "$ref" in schema
        return run.target(schema["$ref"]) if is_reference else schema

    return alternatives(schemas, resolved)


def _not(run: Checker, schema: Any, value: Any, _schema: Mapping[str, Any], path: str) -> Found:
    if isinstance(schema, (bool, Mapping)) and run.fits(schema, value, path):
        yield Problem(path, f"anything but {in_words(schema)}", kind_of(value), "not")


def _if(run: Checker, schema: Any, value: Any, beside: Mapping[str, Any], path: str) -> Found:
    if isinstance(schema, (bool, Mapping)):
        branch = "then" if run.fits(schema, value, path) else "else"
        yield from run.check(beside.get(branch, True), value, path)


CHECKS: Mapping[str, Check] = {
    "$ref": _ref,
    "allOf": _all,
    "anyOf": _any,
    "oneOf": _one,
    "not": _not,
    "if": _if,
}
