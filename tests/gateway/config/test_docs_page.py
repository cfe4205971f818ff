"""docs/operations/configuration.md: its files are loaded, and it names every field."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dragoman.gateway.config import route_tables
from dragoman.gateway.config.provider_tables import _FIELDS, _TIMEOUTS
from dragoman.gateway.config.reading import parse_config
from dragoman.gateway.config.server_table import FIELDS
from dragoman.gateway.config.settings import ServerSettings
from dragoman.transport.protocol import Timeouts

PAGE = Path(__file__).parents[3] / "docs" / "operations" / "configuration.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```toml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_every_file_of_the_page_can_be_loaded(block: str) -> None:
    """Unchanged."""
    assert parse_config(block, {}).source is not None


@pytest.mark.parametrize(
    "fields",
    [FIELDS, _FIELDS, _TIMEOUTS, route_tables._SETTINGS, route_tables._BUDGET],
    ids=["server", "providers", "timeouts", "settings", "budget"],
)
def test_every_field_is_on_the_page(fields: dict[str, object]) -> None:
    """As code."""
    assert [name for name in fields if not re.search(rf"`{name}`", TEXT)] == []


def test_the_defaults_of_the_page_are_the_defaults() -> None:
    """The first example has them, except for stores and the like."""
    block = next(each for each in BLOCKS if "drain_timeout" in each)
    given = parse_config(block, {}).server
    usual = ServerSettings()
    others = {
        "envelope_keys",
        "keys",
        "history",
        "allowed_hosts",
        "trusted_proxies",
        "log",
        "middleware",
        "path_prefix",
        "prompts",
        "titles",
    }
    for name in FIELDS.keys() - others:
        assert getattr(given, name) == getattr(usual, name), name


def test_the_fields_are_those_of_the_settings() -> None:
    """Every setting can be read from the file."""
    assert set(FIELDS) == set(ServerSettings.__struct_fields__)
    assert set(_TIMEOUTS) == set(Timeouts.__struct_fields__)
