"""Who a request is from: connections, proxies, and clients that pretend to be one."""

from __future__ import annotations

import pytest

from dragoman.gateway.clients import UNKNOWN, ClientAddresses, group_of

PROXY = "10.0.0.1"
TRUSTING = ClientAddresses(["10.0.0.0/8", "::1", "2001:db8:ffff::/48"])
XFF, FORWARDED = b"x-forwarded-for", b"forwarded"


def test_without_trusted_proxies_headers_mean_nothing() -> None:
    """Any client could send them."""
    headers = [(XFF, b"192.0.2.1"), (FORWARDED, b"for=192.0.2.1")]
    assert ClientAddresses([]).of("127.0.0.1", headers) == "127.0.0.1"
    assert TRUSTING.of("198.51.100.1", headers) == "198.51.100.1"
    assert TRUSTING.of("", headers) == ""


@pytest.mark.parametrize(
    ("name", "values", "client"),
    [
        (XFF, [b"192.0.2.1"], "192.0.2.1"),
        (XFF, [b"127.0.0.1, 192.0.2.1"], "192.0.2.1"),
        (XFF, [b"192.0.2.9, 192.0.2.1, 10.0.0.7,2001:db8:ffff::1"], "192.0.2.1"),
        (XFF, [b"192.0.2.9", b"192.0.2.1", b"10.0.0.7"], "192.0.2.1"),
        (XFF, [b"10.0.0.9, 10.0.0.8"], "10.0.0.9"),
        (XFF, [b"192.0.2.1:4711"], "192.0.2.1"),
        (XFF, [b"[2001:db8::1]:4711"], "2001:db8::1"),
        (XFF, [b"2001:DB8:0::1"], "2001:db8::1"),
        (XFF, [b"::ffff:192.0.2.1"], "192.0.2.1"),
        (XFF, [b"fe80::1%eth0"], "fe80::1"),
        (XFF, [b"192.0.2.1, unknown"], UNKNOWN),
        (XFF, [b"192.0.2.1, "], UNKNOWN),
        (XFF, [b"evil, 10.0.0.2"], UNKNOWN),
        (XFF, [b"\xff" * 50_000], UNKNOWN),
        (XFF, [b"1.1.1.1," * 5_000 + b"192.0.2.1"], "192.0.2.1"),
        (FORWARDED, [b"for=192.0.2.1"], "192.0.2.1"),
        (FORWARDED, [b'for=1.1.1.1, For="[2001:db8::1]:80";proto=https;by=10.0.0.1'],
         "2001:db8::1"),
        (FORWARDED, [b"for=192.0.2.1", b"proto=http; for=10.0.0.3"], "192.0.2.1"),
        (FORWARDED, [b"for=192.0.2.1, for=_hidden"], UNKNOWN),
        (FORWARDED, [b"for=192.0.2.1, by=10.0.0.1"], UNKNOWN),
        (FORWARDED, [b"xfor=192.0.2.1"], UNKNOWN),
    ],
)  # fmt: skip
def test_the_last_untrusted_address_is_the_client(
    name: bytes, values: list[bytes], client: str
) -> None:
    """What a client wrote itself stands before it, and what trusted proxies added behind it."""
    assert TRUSTING.of(PROXY, [(name, value) for value in values]) == client


def test_contradicting_headers_name_nobody() -> None:
    """A proxy that sets one of them may pass on the other, which then is the client's own."""
    assert TRUSTING.of(PROXY, [(XFF, b"192.0.2.1"), (FORWARDED, b"for=127.0.0.1")]) == UNKNOWN
    assert TRUSTING.of(PROXY, [(XFF, b"192.0.2.1"), (FORWARDED, b"for=192.0.2.1")]) == "192.0.2.1"


def test_a_trusted_proxy_without_headers_is_the_client() -> None:
    """As with requests that it makes itself."""
    assert TRUSTING.of(PROXY, [(b"host", b"x")]) == PROXY
    assert TRUSTING.of("::ffff:10.0.0.1", [(XFF, b"192.0.2.1")]) == "192.0.2.1"


def test_addresses_of_one_customer_count_together() -> None:
    """Every IPv6 customer has 2**64 addresses at least; an IPv4 address is one, however written."""
    assert group_of("2001:db8:1:2::1") == group_of("2001:db8:1:2:ffff::") == "2001:db8:1:2::/64"
    assert group_of("2001:db8:1:3::1") != group_of("2001:db8:1:2::1")
    assert group_of("::ffff:192.0.2.1") == group_of("192.0.2.1") == "192.0.2.1"
    assert [group_of(each) for each in ("", UNKNOWN)] == ["", UNKNOWN]
