"""Parses docstrings of functions and classes: Google, NumPy or Sphinx style."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from inspect import cleandoc
from typing import NamedTuple

_PARAMETERS = {
    "args", "arguments", "attributes", "keyword args", "keyword arguments", "other parameters",
    "parameters", "params",
}  # fmt: skip
_OTHERS = {
    "example", "examples", "raises", "references", "return", "returns", "see also", "todo",
    "warns", "yield", "yields",
}  # fmt: skip
_SECTIONS = _PARAMETERS | _OTHERS

_GOOGLE_ENTRY = re.compile(r"\s+\*{0,2}(\w+)\s*(?:\([^)]*\)+)?\s*:(?:\s+(.*)|$)")
_NUMPY_ENTRY = re.compile(r"((?:\*{0,2}\w+)(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_UNDERLINE = re.compile(r"-{3,}\s*$")
_FIELD = re.compile(r":(\w+)(?:\s+([^:]*))?:(?:\s+(.*)|$)")
_PARAMETER_FIELDS = {"param", "parameter", "arg", "argument", "key", "keyword", "ivar", "var"}
_OTHER_FIELDS = {
    "except", "exception", "meta", "raise", "raises", "return", "returns", "rtype", "type",
    "vartype", "yield", "yields", "ytype",
}  # fmt: skip


class Docstring(NamedTuple):
    """The description in a docstring, and the descriptions of the parameters."""

    description: str = ""
    parameters: Mapping[str, str] = {}


def parse(text: str | None) -> Docstring:
    """Parses a docstring: the text before the first section, and the parameters' descriptions."""
    lines = cleandoc(text or "").splitlines()
    end = next((at for at in range(len(lines)) if _starts_section(lines, at)), len(lines))
    found = {**_google(lines), **_numpy(lines), **_sphinx(lines)}
    parameters = {name: " ".join(" ".join(words).split()) for name, words in found.items()}
    description = "\n".join(lines[:end]).strip()
    return Docstring(description, {name: said for name, said in parameters.items() if said})


def _starts_section(lines: list[str], at: int) -> bool:
    line = lines[at].rstrip()
    if line.endswith(":") and line[:-1].lower() in _SECTIONS:
        return True
    if line.lower() in _SECTIONS and _is_underlined(lines, at):
        return True
    field = _FIELD.match(line)
    return field is not None and field[1] in _PARAMETER_FIELDS | _OTHER_FIELDS


def _is_underlined(lines: list[str], at: int) -> bool:
    return at + 1 < len(lines) and _UNDERLINE.match(lines[at + 1]) is not None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _google(lines: list[str]) -> dict[str, list[str]]:
    """Parses `Args:` followed by indented lines of `name (type): words`."""
    found: dict[str, list[str]] = {}
    for at, line in enumerate(lines):
        if line.rstrip().endswith(":") and line.rstrip()[:-1].lower() in _PARAMETERS:
            _google_entries(_block(lines[at + 1 :]), found)
    return found


def _google_entries(block: list[str], found: dict[str, list[str]]) -> None:
    margin = min((_indent(line) for line in block if line.strip()), default=0)
    words: list[str] = []
    for line in block:
        entry = _GOOGLE_ENTRY.match(line) if _indent(line) == margin else None
        if entry:
            words = found.setdefault(entry[1], [])
            words.append(entry[2] or "")
        else:
            words.append(line.strip())


def _block(lines: Iterable[str]) -> list[str]:
    """The indented lines at the start."""
    block: list[str] = []
    for line in lines:
        if line.strip() and not _indent(line):
            break
        block.append(line)
    return block


def _numpy(lines: list[str]) -> dict[str, list[str]]:
    """Parses an underlined `Parameters`, then `name : type` with indented text below it."""
    found: dict[str, list[str]] = {}
    named: list[list[str]] = []
    is_inside = False
    for at, line in enumerate(lines):
        if _is_underlined(lines, at):
            is_inside = line.strip().lower() in _PARAMETERS
            named = []
        elif is_inside and line.strip() and not _indent(line):
            entry = _NUMPY_ENTRY.match(line)
            names = [name.strip(" *") for name in entry[1].split(",")] if entry else []
            named = [found.setdefault(name, []) for name in names]
        elif is_inside:
            for words in named:
                words.append(line.strip())
    return found


def _sphinx(lines: list[str]) -> dict[str, list[str]]:
    """Parses `:param type name: words`, continued on indented lines."""
    found: dict[str, list[str]] = {}
    words: list[str] = []
    for line in lines:
        field = _FIELD.match(line)
        if field:
            names = (field[2] or "").split()
            words = []
            if field[1] in _PARAMETER_FIELDS and names:
                words = found.setdefault(names[-1].strip("*"), [])
            words.append(field[3] or "")
        elif line.strip() and not _indent(line):
            words = []
        else:
            words.append(line.strip())
    return found
