"""Finds the proxy for a URL from the environment, as other programs do."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from dragoman.errors import ConfigError


def proxy_for(url: str) -> str | None:
    """The proxy for a URL (`HTTPS_PROXY`, `ALL_PROXY` …); None: a direct connection.

    Addresses on this machine never use a proxy, as in Go and browsers: the proxy could not reach
    models that run here.
    """
    proxies = getproxies()
    if not proxies:
        return None
    parts = urlsplit(url)
    found = proxies.get(parts.scheme) or proxies.get("all")
    host = parts.hostname or ""
    if not found or _is_here(host) or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return _usable(found)


def _is_here(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _usable(proxy: str) -> str:
    scheme, named, _ = proxy.partition("://")
    if not named:
        return f"http://{proxy}"
    if scheme.lower() not in {"http", "https"}:
        msg = "the proxy in the environment must start with http:// or https://"
        raise ConfigError(msg)
    return proxy
