"""Parses request settings as typed: `temperature=0.2`, `thinking=high`."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.cli.exit_codes import USAGE, Ending
from dragoman.errors import DragomanError

UNSET = "default"
"""The value that resets a setting to the provider's default."""

_BOOLEANS = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
_KINDS = {bool: "on or off", int: "a whole number", float: "a number", str: "a word"}
_WORDS = {
    "verbosity": ("low", "medium", "high"),
    "thinking": ("on", "off", "minimal", "low", "medium", "high"),
    "tool_choice": ("auto", "none", "required"),
    "logprobs": ("on", "off"),
}


def setting_names() -> list[str]:
    """The names of all settings."""
    from dragoman.agent import Settings

    return list(Settings.__annotations__)


def suggested(name: str) -> tuple[str, ...]:
    """Suggested values of a setting."""
    return (*_WORDS.get(name, ()), UNSET)


def settings_from(pairs: Sequence[str]) -> dict[str, Any]:
    """Settings from `-o name=value`; exits if one is invalid."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise Ending(USAGE, f"-o {pair}: write a setting as name=value")
        name = known_setting(name)
        if text.strip().lower() != UNSET:
            found[name] = setting_value(name, text)
    return found


def known_setting(name: str) -> str:
    """The setting with this name; exits with suggestions if there is none."""
    from dragoman.model.spelling import did_you_mean

    names = setting_names()
    heard = name.strip().lower().replace("-", "_")
    if heard in names:
        return heard
    near = did_you_mean(heard, names)
    hint = near or f"; the settings are {', '.join(names)}"
    raise Ending(USAGE, f"unknown setting {name.strip() or '(empty)'}{hint}")


def setting_value(name: str, text: str) -> Any:
    """A typed value, parsed as the setting's type."""
    text = text.strip()
    if not text:
        raise Ending(USAGE, f"{name}: needs a value; {UNSET} resets it to the provider's default")
    if name == "thinking":
        return _thinking(text)
    kinds = _kinds(name)
    for kind in (bool, int, float):
        if kind in kinds:
            return _plain(name, text, kind)
    if str in kinds:
        return text
    return _structured(name, text, kinds)


def _kinds(name: str) -> tuple[Any, ...]:
    """The types that a setting accepts, without None."""
    import typing

    from dragoman.agent import Settings

    hint = typing.get_type_hints(Settings)[name]
    each_of = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return tuple(each for each in each_of if each is not type(None))


def _plain(name: str, text: str, kind: type) -> Any:
    try:
        return _BOOLEANS[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError, OverflowError):
        raise Ending(USAGE, f"{name}: must be {_KINDS[kind]}") from None


def _thinking(text: str) -> bool | int | str:
    if text.isdecimal():
        return int(_plain("thinking", text, int))
    return _BOOLEANS.get(text.lower(), text.lower())


def _structured(name: str, text: str, kinds: tuple[Any, ...]) -> Any:
    """A list of words, or a JSON object."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if name == "stop":
        given = value if isinstance(value, list) else [value if isinstance(value, str) else text]
        return tuple(str(each) for each in given)
    if not isinstance(value, dict):
        raise Ending(USAGE, f'{name}: must be a JSON object, such as {{"…": …}}')
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return _made(name, kind, value)
    return value


def _made(name: str, kind: Any, value: Mapping[str, Any]) -> Any:
    from dragoman.model.spelling import did_you_mean

    fields = kind.__struct_fields__
    unknown = [each for each in value if each not in fields]
    if unknown:
        near = did_you_mean(unknown[0], fields) or f"; the fields are {', '.join(fields)}"
        raise Ending(USAGE, f"{name}: unknown field {unknown[0]}{near}")
    try:
        return kind(**value)
    except (DragomanError, TypeError, ValueError) as error:
        known = isinstance(error, DragomanError)
        raise Ending(USAGE, str(error) if known else f"{name}: has an invalid value") from None


def request_fields(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as fields of a request."""
    from dragoman.model.requests import ThinkingConfig
    from dragoman.model.tools import ToolChoice

    fields = dict(settings)
    match fields.get("thinking"):
        case bool() as enabled:
            fields["thinking"] = ThinkingConfig(enabled=enabled, visible=enabled or None)
        case int() as budget:
            fields["thinking"] = ThinkingConfig(enabled=True, budget=budget, visible=True)
        case "none":
            fields["thinking"] = ThinkingConfig(enabled=False, effort="none")
        case str() as effort:
            fields["thinking"] = ThinkingConfig(enabled=True, effort=effort, visible=True)
        case _:
            pass
    if isinstance(choice := fields.get("tool_choice"), str):
        is_mode = choice in _WORDS["tool_choice"]
        fields["tool_choice"] = ToolChoice(choice) if is_mode else ToolChoice("named", (choice,))  # type: ignore[arg-type]  # one of its modes
    return fields
