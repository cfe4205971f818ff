"""Is a schema plain for a target? Types made from its profile take it, in one pass.

A schema that they take is one that the compiler leaves as it is: objects, arrays and scalars with
the keywords of every day. Anything else is for the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import count
from threading import Lock
from typing import Any, Literal, NamedTuple

from msgspec import UNSET, MsgspecError, UnsetType, convert, defstruct

from dragoman.model.jsontext import plain_decoder
from dragoman.wire.schemas.profiles import Profile

_MOST_REQUIRED = 50
"""As many as the compiler compares one by one."""
_LIMITS = ("max_min_items", "max_levels", "max_properties", "max_literals", "max_optional",
           "max_unions")  # fmt: skip
_LIMITS_OF_TEXT = ("format", "minLength", "maxLength")
_ODD = (MsgspecError, ValueError, TypeError, RecursionError)


class _Taken(NamedTuple):
    """What a profile takes."""

    root: Any
    """The type of a schema's root; None: the profile says too much for types."""
    decode: Callable[[bytes], Any]


def is_plain(schema: Mapping[str, Any], profile: Profile) -> bool:
    """Whether a profile takes this schema as it is."""
    root = _taken(profile).root
    if root is None:
        return False
    try:
        convert(schema, root)
    except _ODD:
        return False
    return True


def is_plain_text(schema: bytes, profile: Profile) -> bool:
    """Like `is_plain`, for a schema in JSON; false if it is none."""
    taken = _taken(profile)
    if taken.root is None:
        return False
    try:
        taken.decode(schema)
    except _ODD:
        return False
    return True


_KEYWORDS = frozenset({"type", "title", "description", "enum", "properties", "required", "items",
                       "additionalProperties"})  # fmt: skip
_COMMON = Profile(name="common", keywords=_KEYWORDS, formats=frozenset(), defines_required=True)
"""What every profile takes that does not say more of objects than their properties."""
_MOST_NESTED = 100


def is_common(schema: bytes) -> bool:
    """Whether a schema in JSON is plain for nearly all targets, and can be frozen."""
    if schema.count(b"{") + schema.count(b"[") > _MOST_NESTED:
        return False
    return is_plain_text(schema, _COMMON)  # it has no numbers


@cache
def takes_common(profile: Profile) -> bool:
    """Whether a profile takes all that is common."""
    return _taken(profile).root is not None and all(map(profile.takes, _KEYWORDS))


@cache
def _taken(profile: Profile) -> _Taken:
    says_more = profile.is_closed or profile.requires_all or profile.has_distinct_first_keys
    if says_more or any(getattr(profile, name) is not None for name in _LIMITS):
        return _Taken(None, bytes)
    with _making:  # their names must be their own until they are described
        root = _types(profile, str(next(_numbers)))
        # A union, as a struct that stands alone may lack its tag; an array is never at the root.
        return _Taken(root, plain_decoder(root).decode)


_making = Lock()
_numbers = count()


def _types(profile: Profile, suffix: str) -> Any:  # noqa: C901 - a type and its checks each
    """The types of schemas, which refer to each other by names in this module."""
    optional = {
        "title": str, "description": str, "default": Any, "minLength": int, "maxLength": int,
        "minimum": float | int, "maximum": float | int,
    }  # fmt: skip

    def fields(*names: str) -> list[Any]:
        return [
            (name, optional[name] if optional[name] is Any else optional[name] | UnsetType, UNSET)
            for name in ("title", "description", "default", *names)
            if profile.takes(name)
        ]

    def enum(self: Any) -> None:
        if self.enum is UNSET:
            return
        # The compiler leaves out words that do not meet a limit beside them.
        is_limited = any(getattr(self, name, UNSET) is not UNSET for name in _LIMITS_OF_TEXT)
        if is_limited or not 0 < len({*self.enum, ""}) - 1 == len(self.enum):
            raise ValueError

    def properties(self: Any) -> None:
        required = self.required
        if required is UNSET:
            return
        if len(required) > _MOST_REQUIRED or len({*required}) != len(required):
            raise ValueError
        known = {} if self.properties is UNSET else self.properties
        if profile.defines_required and not known.keys() >= {*required}:
            raise ValueError

    def made(name: str, tag: str, fields: list[Any], check: Any = None) -> Any:
        space = {} if check is None else {"__post_init__": check}
        return defstruct(
            f"{name}{suffix}", fields, tag_field="type", tag=tag, namespace=space,
            forbid_unknown_fields=True, gc=False, module=__name__,
        )  # fmt: skip

    formats: Any = str if profile.formats is None else Literal[tuple(sorted(profile.formats))]
    texts: list[Any] = [("enum", list[str] | UnsetType, UNSET)]
    if profile.takes("format"):
        texts.append(("format", formats | UnsetType, UNSET))
    inner: list[Any] = [
        ("properties", f"dict[str, Any{suffix}] | UnsetType", UNSET),
        ("required", list[str] | UnsetType, UNSET),
    ]
    if profile.takes("additionalProperties"):
        inner.append(("additionalProperties", bool | UnsetType, UNSET))
    here = globals()
    here[f"Array{suffix}"] = made("Array", "array", [("items", f"Any{suffix}"), *fields()])
    here[f"Object{suffix}"] = made("Object", "object", [*fields(), *inner], properties)
    scalars = (
        made("String", "string", [*fields("minLength", "maxLength"), *texts], enum),
        made("Integer", "integer", fields("minimum", "maximum")),
        made("Number", "number", fields("minimum", "maximum")),
        made("Boolean", "boolean", fields()),
    )
    kinds = here[f"Array{suffix}"] | here[f"Object{suffix}"]
    for each in scalars:
        kinds |= each
    here[f"Any{suffix}"] = kinds
    never = made("Never", "", [("never", Literal["never"])])
    return here[f"Object{suffix}"] | never
