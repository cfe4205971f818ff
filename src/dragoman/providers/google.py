"""Google's Gemini API."""

from __future__ import annotations

from dragoman.providers.families import GEMINI
from dragoman.providers.provider import Auth, Provider
from dragoman.wire.gemini.dialect import TARGET

PROVIDER = Provider(
    "google",
    (TARGET,),
    "https://generativelanguage.googleapis.com",
    auth=Auth("x-goog-api-key", None),
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    families=GEMINI,
    aliases=("gemini", "google-ai-studio"),
    prefixes=("models/",),  # as its own list has them
)
