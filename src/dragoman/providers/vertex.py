"""Google's Vertex AI: Gemini's dialect, and Anthropic's for Claude; the model is in the path."""

from __future__ import annotations

from dragoman.providers.endpoints import Endpoints
from dragoman.providers.facts import anthropic, google
from dragoman.providers.provider import Provider
from dragoman.wire.anthropic.dialect import TARGET as ANTHROPIC
from dragoman.wire.gemini.dialect import TARGET as GOOGLE

_GOOGLE, _ANTHROPIC = "/publishers/google/models/{model}", "/publishers/anthropic/models/{model}"

PROVIDER = Provider(
    "vertex",
    (
        GOOGLE.with_flags({"state.fields": ("cached_content", "continuation_token")}),
        ANTHROPIC.with_flags(
            {
                "host.names_model_in_path": True,
                "host.api_version": "vertex-2023-10-16",
                "sampling.has_fast_mode": False,  # Anthropic's documentation, 2026-11
            }
        ),
    ),
    # For the location `global`, the host has no location prefix.
    "https://{location}-aiplatform.googleapis.com/v1/projects/{project}/locations/{location}",
    address_variables={
        "GOOGLE_VERTEX_BASE_URL": "/v1/projects/{project}/locations/{location}",
    },
    keys=("VERTEX_ACCESS_TOKEN",),  # short-lived, from `gcloud auth print-access-token`
    families=(*google.FAMILIES, *anthropic.FAMILIES),
    routes={r"claude": "anthropic"},
    endpoints={
        "gemini": Endpoints(
            generate=f"{_GOOGLE}:generateContent",
            stream=f"{_GOOGLE}:streamGenerateContent?alt=sse",
            count=f"{_GOOGLE}:countTokens",
        ),
        "anthropic": Endpoints(
            generate=f"{_ANTHROPIC}:rawPredict",
            stream=f"{_ANTHROPIC}:streamRawPredict",
            count="/publishers/anthropic/models/count-tokens:rawPredict",
            wraps_counts=True,
        ),
    },
    parameters={
        "project": ("GOOGLE_CLOUD_PROJECT",),
        "location": ("GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_REGION"),
    },
    defaults={"location": "us-central1"},
    aliases=("vertex-ai", "google-vertex"),
    prefixes=(
        *("publishers/google/models/", "publishers/anthropic/models/"),
        *("models/", "google/", "anthropic/"),
    ),
)
