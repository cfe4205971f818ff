"""Every flag of every provider and dialect, every size and price, as a table to compare with.

    .venv/bin/python -m tests.providers.pinned

writes the table anew after a flag was changed on purpose; the difference is to be read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from dragoman.providers.context_windows import SIZES
from dragoman.providers.price import Price
from dragoman.providers.price_list import _LISTS as PRICES
from dragoman.providers.registry import provider, provider_names
from dragoman.wire.dialect import dialect, dialects
from dragoman.wire.flags import Flags
from dragoman.wire.target import GROUPS, Target

TABLE = Path(__file__).with_name("pinned.json")


def pinned() -> dict[str, Any]:
    """What is known of everybody; of targets only what is not the default, which comes first."""
    return {
        "defaults": {name: plain(getattr(_DEFAULT, name)) for name in _DEFAULT.__struct_fields__},
        "demands": {
            f"{name}.{flag}": [list(demand.rules), plain(demand.relaxed)]
            for name in (*GROUPS, "")
            for flag, demand in (_DEFAULT.flag(name) if name else _DEFAULT).demands.items()
        },
        "sizes": [[each.pattern, each.context_window, each.max_output_tokens] for each in SIZES],
        **{f"prices {name}": plain(PRICES[name]) for name in sorted(PRICES)},
        **{f"dialect {name}": plain(dialect(name).target) for name in sorted(dialects())},
        **{f"provider {name}": plain(provider(name)) for name in sorted(provider_names())},
    }


_DEFAULT = Target(dialect="")


def plain(value: Any) -> Any:  # noqa: PLR0911 - a table
    """A value as JSON has it."""
    match value:
        case Target():
            return _differing(value)
        case msgspec.Struct():
            return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
        case Price():
            return plain(asdict(value))
        case Decimal():
            return str(value)
        case Mapping():
            return {name: plain(inner) for name, inner in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(inner) for inner in value]
        case str() | bool() | int() | float() | None:
            return value
        case _:
            return f"<{getattr(value, '__qualname__', type(value).__qualname__)}>"


def _differing(target: Target) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in target.__struct_fields__:
        flags, usual = getattr(target, name), getattr(_DEFAULT, name)
        if isinstance(flags, Flags):
            found |= {
                f"{name}.{flag}": plain(getattr(flags, flag))
                for flag in flags.__struct_fields__
                if getattr(flags, flag) != getattr(usual, flag)
            }
        elif flags != usual:
            found[name] = plain(flags)
    return found


def main() -> None:
    """Write the table."""
    TABLE.write_text(json.dumps(pinned(), indent=1, ensure_ascii=False, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
