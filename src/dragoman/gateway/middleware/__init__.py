"""Middleware: the operator's custom Python functions between clients and models."""

from dragoman.gateway.middleware.calling import Stopped
from dragoman.gateway.middleware.filters import ExchangeFilters, Middleware
from dragoman.gateway.middleware.info import Info
from dragoman.gateway.middleware.loading import load_middleware

__all__ = ["ExchangeFilters", "Info", "Middleware", "Stopped", "load_middleware"]
