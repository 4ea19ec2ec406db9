"""Whether a host is this machine, in any spelling of its name or address."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine, in any spelling: `127.0.0.2`, the long form of `::1`, `localhost`."""
    host = host.lower().removesuffix(".").removeprefix("[").removesuffix("]")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return address.is_loopback or bool(mapped and mapped.is_loopback)
