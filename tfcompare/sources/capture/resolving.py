"""Finds the workers that the name of a TPU (by gcloud) or of a cluster (by DNS) stands for."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterable
from ipaddress import ip_address
from textwrap import shorten

from tfcompare.sources.capture.addresses import PATIENCE_S, Address, DnsName, Target, TpuName, answers
from tfcompare.sources.capture.request import LeftOut

GCLOUD_PATIENCE_S = 30.0
"""The timeout for gcloud, which takes seconds to start and asks a server on the Internet."""

_MOST_CHARACTERS = 240
"""Of what gcloud printed: its error, and the beginning of what it recommends."""

_Resolved = tuple[Address, ...] | str
"""The addresses, or why there are none, which completes a sentence that begins with the name."""


def resolve(
    targets: Iterable[Target], dns_s: float = PATIENCE_S, gcloud_s: float = GCLOUD_PATIENCE_S
) -> tuple[tuple[Address, ...], tuple[LeftOut, ...]]:
    """(the addresses of all targets without duplicates, the names without any address); names are asked in parallel.

    gcloud uses the login of the user of this process.
    """
    targets = tuple(targets)
    names = [target for target in targets if not isinstance(target, Address)]
    longest_s = gcloud_s + PATIENCE_S if any(isinstance(name, TpuName) for name in names) else dns_s
    found = answers(
        lambda name: _of_dns(name) if isinstance(name, DnsName) else _of_tpu(name, gcloud_s), names, longest_s
    )
    late = f"could not be resolved within {longest_s:g} s; check the name and the network"
    addresses, left_out = dict[Address, None](), []
    for target in targets:
        result = (target,) if isinstance(target, Address) else found.get(target, late)
        if isinstance(result, str):
            left_out.append(LeftOut(target, result))
        else:
            addresses |= dict.fromkeys(result)
    return tuple(addresses), tuple(left_out)


def _of_dns(name: DnsName) -> _Resolved:
    """The IPv4 addresses of the name, or those of IPv6 if it has no others: a worker often has one of each."""
    try:
        entries = socket.getaddrinfo(name.host.strip("[]"), name.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # the latter for an empty or overlong part of a name
        return f"has no address in DNS ({getattr(error, 'strerror', None) or error}); check its spelling"
    numbers = sorted({ip_address(entry[4][0]) for entry in entries}, key=int)
    of_v4 = [number for number in numbers if number.version == 4]
    return tuple(_address(str(number), name.port) for number in of_v4 or numbers)


def _of_tpu(tpu: TpuName, patience_s: float) -> _Resolved:
    """The internal addresses of the TPU's workers, which TensorFlow's TPUClusterResolver returns as well."""
    command = ["gcloud", "compute", "tpus", "tpu-vm", "describe", tpu.name, "--format", "json"]
    command += ["--zone", tpu.zone] if tpu.zone else []
    command += ["--project", tpu.project] if tpu.project else []
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace", start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        return f"needs the Google Cloud CLI, and gcloud cannot be run ({error.strerror}); install it and log in"
    with process:
        try:
            out, err = process.communicate(timeout=patience_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # gcloud is a script that starts Python
            return f"could not be looked up: gcloud did not answer within {patience_s:g} s; check the network"
    if process.returncode:
        reason = err.rpartition("ERROR: ")[2].removeprefix("(gcloud.compute.tpus.tpu-vm.describe) ")
        reason = reason.partition("The attribute can be set in the following ways")[0]  # a list of options follows
        return f"could not be looked up by gcloud: {shorten(reason, _MOST_CHARACTERS, placeholder=' …')}"
    try:
        node = json.loads(out)
        state, endpoints = node["state"], node.get("networkEndpoints", [])
        numbers = [endpoint["ipAddress"] for endpoint in endpoints if endpoint.get("ipAddress")]
        addresses = tuple(_address(number, tpu.port) for number in numbers)
    except (ValueError, KeyError, TypeError, AttributeError):  # no JSON, or JSON of something else
        return f"could not be looked up: gcloud printed something else than a TPU: {shorten(out, 80)!r}"
    if state != "READY":
        return f"is in state {state}; wait until it is READY"
    return addresses or "has no network endpoint, so none of its workers can be reached"


def _address(number: str, port: int) -> Address:
    return Address(f"[{number}]" if ip_address(number).version == 6 else number, port)
