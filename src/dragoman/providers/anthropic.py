"""Anthropic."""

from __future__ import annotations

from dragoman.providers.facts.anthropic import FAMILIES, NAMES
from dragoman.providers.provider import Auth, Provider
from dragoman.wire.anthropic.dialect import TARGET

PROVIDER = Provider(
    "anthropic",
    (TARGET,),
    "https://api.anthropic.com",
    auth=Auth("x-api-key", None),
    keys=("ANTHROPIC_API_KEY",),
    address_variables={"ANTHROPIC_BASE_URL": ""},
    unused_variables=("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"),
    model_pattern="claude-",
    headers={"anthropic-version": "2023-06-01"},
    families=FAMILIES,
    names=NAMES,
    aliases=("claude",),
)
