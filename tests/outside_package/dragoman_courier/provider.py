"""A provider that speaks Courier."""

from __future__ import annotations

from dragoman import Provider
from dragoman.providers.endpoints import Endpoints
from dragoman_courier.description import NAME, TARGET

PROVIDER = Provider(
    "courier-cloud",
    (TARGET,),
    "https://api.courier.example",
    keys=("COURIER_API_KEY",),
    endpoints={NAME: Endpoints(generate="/send")},
)
