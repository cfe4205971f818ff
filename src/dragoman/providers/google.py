"""Google's Gemini API."""

from __future__ import annotations

from dragoman.providers.facts.google import FAMILIES, NAMES
from dragoman.providers.provider import Auth, Provider
from dragoman.wire.gemini.dialect import TARGET

PROVIDER = Provider(
    "google",
    (TARGET,),
    "https://generativelanguage.googleapis.com",
    auth=Auth("x-goog-api-key", None),
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    families=FAMILIES,
    names=NAMES,
    aliases=("gemini", "google-ai-studio"),
    prefixes=("models/",),  # as in its list of models
)
