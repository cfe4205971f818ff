"""Checks that a mapping is a JSON Schema: the known keywords, each with a value of its type.

The structure is declared as a msgspec Struct and validated in one pass in C, which takes about a
microsecond per tool. Unknown keywords and their values are ignored.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import convert

_read = msgspec.convert

_Type = Literal["string", "number", "integer", "boolean", "object", "array", "null"]
_Number = int | float
_Count = Annotated[int, msgspec.Meta(ge=0)] | Annotated[float, msgspec.Meta(ge=0)]  # 2.0 is valid

_NAMES = {"ref": "$ref", "defs": "$defs", "not_": "not", "if_": "if", "else_": "else"}


def _keyword(field: str) -> str:
    """The keyword for a field name: `any_of` gives `anyOf`."""
    first, *rest = field.split("_")
    return _NAMES.get(field) or first + "".join(word.capitalize() for word in rest)


class Schema(msgspec.Struct, rename=_keyword):
    """The keywords of JSON Schema (2020-12, and the older spellings of drafts 4 to 7)."""

    type: _Type | list[_Type] | UnsetType = UNSET
    properties: dict[str, Schema | bool] | UnsetType = UNSET
    required: list[str] | UnsetType = UNSET
    additional_properties: Schema | bool | UnsetType = UNSET
    pattern_properties: dict[str, Schema | bool] | UnsetType = UNSET
    property_names: Schema | bool | UnsetType = UNSET
    items: Schema | bool | list[Schema | bool] | UnsetType = UNSET
    prefix_items: list[Schema | bool] | UnsetType = UNSET
    contains: Schema | bool | UnsetType = UNSET
    any_of: list[Schema | bool] | UnsetType = UNSET
    one_of: list[Schema | bool] | UnsetType = UNSET
    all_of: list[Schema | bool] | UnsetType = UNSET
    not_: Schema | bool | UnsetType = UNSET
    if_: Schema | bool | UnsetType = UNSET
    then: Schema | bool | UnsetType = UNSET
    else_: Schema | bool | UnsetType = UNSET
    enum: list[Any] | UnsetType = UNSET
    ref: str | UnsetType = UNSET
    defs: dict[str, Schema | bool] | UnsetType = UNSET
    definitions: dict[str, Schema | bool] | UnsetType = UNSET
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    pattern: str | UnsetType = UNSET
    format: str | UnsetType = UNSET
    minimum: _Number | UnsetType = UNSET
    maximum: _Number | UnsetType = UNSET
    exclusive_minimum: _Number | bool | UnsetType = UNSET  # draft 4: a bool
    exclusive_maximum: _Number | bool | UnsetType = UNSET
    multiple_of: _Number | UnsetType = UNSET
    min_length: _Count | UnsetType = UNSET
    max_length: _Count | UnsetType = UNSET
    min_items: _Count | UnsetType = UNSET
    max_items: _Count | UnsetType = UNSET
    min_properties: _Count | UnsetType = UNSET
    max_properties: _Count | UnsetType = UNSET
    unique_items: bool | UnsetType = UNSET


def check_schema(schema: Any, what: str) -> None:
    """Raises unless this is a JSON Schema; the message says where, but quotes nothing."""
    try:
        _read(schema, Schema)  # one pass in C
        return  # noqa: TRY300 - the usual case
    except (msgspec.ValidationError, RecursionError, UnicodeError):  # Unicode: a lone surrogate
        pass
    try:
        convert(schema, Schema)  # once more, for a safe error message
    except InvalidInputError as error:
        problem = str(error).replace("the JSON contains", "it contains")
    else:
        return
    msg = f"{what} are not a JSON Schema: {problem}"
    raise InvalidInputError(msg)
