"""Which proxy an address goes through, by the environment, as other programs have it."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from dragoman.errors import ConfigError


def proxy_for(url: str) -> str | None:
    """The proxy for an address (`HTTPS_PROXY`, `ALL_PROXY` …); None: straight there.

    This machine itself is never asked for through a proxy, as in Go and browsers: models that run
    here would not be found.
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
        msg = "the environment names a proxy that is neither http:// nor https://"
        raise ConfigError(msg)
    return proxy
