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
    address_variables={"GOOGLE_GEMINI_BASE_URL": ""},
    unused_variables=(
        *("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_API_VERSION"),
    ),
    model_pattern="gemini-|imagen-|veo-",
    families=FAMILIES,
    names=NAMES,
    aliases=("gemini", "google-ai-studio"),
    prefixes=("models/",),  # as in its list of models
)
