"""Which addresses are public: every other kind is named, in each of its disguises."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.ingestion.addresses import judge_address


@pytest.mark.parametrize(
    "address",
    [
        *("1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.0", "11.0.0.0"),
        *("172.15.255.255", "172.32.0.0", "192.167.1.1", "198.17.1.1", "223.255.255.255"),
        *("2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450:4001:800::200e"),
    ],
)
def test_a_public_address_is_let_through(address: str) -> None:
    assert judge_address(address) is None


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("10.1.2.3", "private"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("169.254.169.254", "link-local"),
        ("168.63.129.16", "cloud"),
        ("100.64.0.1", "NAT"),
        ("100.127.255.255", "NAT"),
        ("0.0.0.0", "unspecified"),
        ("0.1.2.3", "unspecified"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.250", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "reserved"),
        ("192.0.0.8", "reserved"),
        ("192.0.2.1", "documentation"),
        ("198.51.100.1", "documentation"),
        ("203.0.113.1", "documentation"),
        ("198.18.0.1", "benchmarks"),
        ("198.19.255.255", "benchmarks"),
        ("192.88.99.1", "6to4"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("::7f00:1", "inside"),
        ("::ffff:127.0.0.1", "inside"),
        ("::ffff:8.8.8.8", "inside"),
        ("64:ff9b::a00:1", "NAT64"),
        ("64:ff9b:1::1", "NAT64"),
        ("2002:7f00:1::", "6to4"),
        ("2002:808:808::1", "6to4"),
        ("2001:0:53aa:64c::1", "Teredo"),
        ("2001:2::1", "reserved"),
        ("2001:20::1", "reserved"),
        ("2001:db8::1", "documentation"),
        ("3fff::1", "documentation"),
        ("fc00::1", "private"),
        ("fdff::1", "private"),
        ("fe80::1", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("fec0::1", "private"),
        ("ff02::1", "multicast"),
        ("4000::1", "reserved"),
        ("100::1", "reserved"),
        ("5f00::1", "reserved"),
        ("localhost", "not an address"),
        ("127.1", "not an address"),
        ("0177.0.0.1", "not an address"),
        ("", "not an address"),
    ],
)
def test_an_address_that_is_not_public_is_named(address: str, kind: str) -> None:
    assert kind in (judge_address(address) or "")


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_what_python_knows_as_special_is_never_let_through(
    address: IPv4Address | IPv6Address,
) -> None:
    special = (
        address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
    )
    assert not special or judge_address(str(address)) is not None


@given(st.ip_addresses(v=4), st.sampled_from(["::ffff:", "64:ff9b::", "::"]))
def test_no_address_of_the_old_kind_hides_in_one_of_the_new(
    address: IPv4Address, prefix: str
) -> None:
    assert judge_address(str(ip_address(f"{prefix}{address}"))) is not None
    assert judge_address(str(IPv6Address((0x2002 << 112) | (int(address) << 80)))) is not None
