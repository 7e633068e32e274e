"""Which addresses are of the public internet: the others are never connected to (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

# Written out, as what `ipaddress` calls private or global differs between versions of Python.
_NOT_PUBLIC_IPV4: Sequence[tuple[IPv4Network, str]] = tuple(
    (IPv4Network(network), kind)
    for network, kind in (
        ("0.0.0.0/8", "an unspecified address"),
        ("10.0.0.0/8", "a private address"),
        ("100.64.0.0/10", "an address behind a carrier's NAT"),
        ("127.0.0.0/8", "a loopback address"),
        ("168.63.129.16/32", "an address of a cloud platform"),
        ("169.254.0.0/16", "a link-local address"),
        ("172.16.0.0/12", "a private address"),
        ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "an address for documentation"),
        ("192.88.99.0/24", "a 6to4 relay"),
        ("192.168.0.0/16", "a private address"),
        ("198.18.0.0/15", "an address for benchmarks"),
        ("198.51.100.0/24", "an address for documentation"),
        ("203.0.113.0/24", "an address for documentation"),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
    )
)
_NOT_PUBLIC_IPV6: Sequence[tuple[IPv6Network, str]] = tuple(
    (IPv6Network(network), kind)
    for network, kind in (
        ("::/128", "an unspecified address"),
        ("::1/128", "a loopback address"),
        ("::ffff:0:0/96", "an IPv4 address inside an IPv6 one"),
        ("::/96", "an IPv4 address inside an IPv6 one"),
        ("64:ff9b::/96", "an IPv4 address inside an IPv6 one (NAT64)"),
        ("64:ff9b:1::/48", "an IPv4 address inside an IPv6 one (NAT64)"),
        ("2001::/32", "an IPv4 address inside an IPv6 one (Teredo)"),
        ("2001::/23", "a reserved address"),
        ("2001:db8::/32", "an address for documentation"),
        ("2002::/16", "an IPv4 address inside an IPv6 one (6to4)"),
        ("3fff::/20", "an address for documentation"),
        ("fc00::/7", "a private address"),
        ("fe80::/10", "a link-local address"),
        ("fec0::/10", "a private address"),
        ("ff00::/8", "a multicast address"),
    )
)
# All that was ever given out for the public IPv6 internet.
_UNICAST_IPV6 = IPv6Network("2000::/3")


def judge_address(address: str) -> str | None:
    """Return what kind of address this is if it is not a public one, else None."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return "not an address"
    return _judge_ipv4(parsed) if isinstance(parsed, IPv4Address) else _judge_ipv6(parsed)


def _judge_ipv4(address: IPv4Address) -> str | None:
    return next((kind for network, kind in _NOT_PUBLIC_IPV4 if address in network), None)


def _judge_ipv6(address: IPv6Address) -> str | None:
    kind = next((kind for network, kind in _NOT_PUBLIC_IPV6 if address in network), None)
    return kind or (None if address in _UNICAST_IPV6 else "a reserved address")
