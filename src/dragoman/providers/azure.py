"""OpenAI's models on Azure; the name of a deployment is used as the model name."""

from __future__ import annotations

from dragoman.providers.endpoints import Endpoints
from dragoman.providers.facts.openai import FAMILIES
from dragoman.providers.openai import STRICT_CHAT
from dragoman.providers.provider import Auth, Provider
from dragoman.wire.openai_responses.dialect import TARGET as RESPONSES

_VERSION = "?api-version={api_version}"

PROVIDER = Provider(
    "azure",
    (STRICT_CHAT, RESPONSES),
    "https://{resource}.openai.azure.com/openai",
    auth=Auth("api-key", None),
    keys=("AZURE_OPENAI_API_KEY",),
    address_variables={"AZURE_OPENAI_ENDPOINT": "/openai"},
    unused_variables=("AZURE_OPENAI_AD_TOKEN",),
    families=FAMILIES,
    endpoints={
        "openai-chat": Endpoints(
            generate=f"/deployments/{{model}}/chat/completions{_VERSION}",
            embed=f"/deployments/{{model}}/embeddings{_VERSION}",
            models=f"/models{_VERSION}",
        ),
        "openai-responses": Endpoints(generate="/v1/responses", models="/v1/models"),
    },
    parameters={
        "resource": ("AZURE_OPENAI_RESOURCE",),
        "api_version": ("AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION"),
    },
    defaults={"api_version": "2024-10-21"},
    aliases=("azure-openai",),
)
