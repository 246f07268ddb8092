"""Addresses of profiler services and names that stand for several: parsed, looked up, and tried."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from textwrap import shorten
from typing import TypeVar

from tfcompare.errors import TfcompareError
from tfcompare.sources.logdir.files import text_of

PATIENCE_S = 3.0
"""The timeout for resolving an address, for connecting, and for a response."""

GCLOUD_PATIENCE_S = 30.0
"""The timeout for gcloud, which takes seconds to start and asks a server on the Internet."""

_MOST_REASON = 240
"""Of what gcloud printed: its error, and the beginning of what it recommends."""

HOW_TO_START = "start it in the program: tf.profiler.experimental.server.start(6009) or jax.profiler.start_server(6009)"

_SCHEME = "grpc://"
TPU_PORT = 8466
"""The port of the profiler service in Google's TPU runtime, which TensorBoard takes for the name of a TPU, too."""

_FORM = "expected host:port, such as localhost:6009, or dns:name:port or tpu:name"
_TPU_FORM = "expected tpu:NAME, tpu:ZONE/NAME or tpu:PROJECT/ZONE/NAME, with :PORT behind it if it is not 8466"
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
_IPV6 = re.compile(r"\[[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%\w+)?\]")
_LABEL = r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?"
"""The name of a TPU, zone or project in Google Cloud. Options begin with a hyphen, so none of them is one."""
_TPU = re.compile(rf"tpu:(?:(?:((?:[a-z][a-z0-9.-]*:)?{_LABEL})/)?({_LABEL})/)?({_LABEL})(?::([^:]*))?")
_HIGHEST_PORT = 65535
_MOST_CHARACTERS = 300
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
"""The first bytes from a gRPC client: the HTTP/2 preface, and an empty settings frame."""
_HEADER_BYTES, _TYPE_AT, _SETTINGS = 9, 3, 4
"""The first bytes of a gRPC server's response: the header of its settings frame."""

Key = TypeVar("Key")
Answer = TypeVar("Answer")


class BadAddress(TfcompareError):
    """The input is not the address of a profiler service."""


@dataclass(frozen=True)
class Address:
    """The address of a profiler service. `host` is a name or an IP address; IPv6 addresses are in brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether the address is known to be on this machine."""
        return self.host in ("localhost", "127.0.0.1", "[::1]", socket.gethostname().lower())

    @property
    def file_name(self) -> str:
        """The name of its host file, with the port as in TensorFlow: a machine may have several workers."""
        return f"{re.sub(r'[^A-Za-z0-9_.-]', '_', self.host.strip('[]'))}_{self.port}.xplane.pb"


@dataclass(frozen=True)
class TpuName:
    """The name of a Cloud TPU, whose workers all have a profiler service at `port`.

    Without `zone` or `project`, those that gcloud is configured for.
    """

    name: str
    zone: str = ""
    project: str = ""
    port: int = TPU_PORT

    def __str__(self) -> str:
        path = "/".join(filter(None, (self.project, self.zone, self.name)))
        return f"tpu:{path}" + (f":{self.port}" if self.port != TPU_PORT else "")


@dataclass(frozen=True)
class DnsName:
    """A name in DNS each of whose addresses is a worker with a profiler service at `port`."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"dns:{self.host}:{self.port}"


Target = Address | TpuName | DnsName
_Resolved = tuple[Address, ...] | str
"""The addresses, or why there are none, which completes a sentence that begins with the name."""


@dataclass(frozen=True)
class LeftOut:
    """An address or name that is missing from a capture; `why` completes a sentence that begins with it."""

    address: Target
    why: str

    def __str__(self) -> str:
        return f"{self.address} {self.why}"


def parse_addresses(texts: Iterable[str]) -> tuple[Target, ...]:
    """The addresses and names in `texts`, without duplicates; commas or line breaks separate several in one text.

    Raises `BadAddress` for an invalid one, or if there are none.
    """
    parts = [part.strip() for text in texts for part in re.split(r"[,\n]", text)]
    targets = tuple(dict.fromkeys(_parse(part) for part in parts if part))
    if not targets:
        raise BadAddress(f"no address was given: {_FORM}")
    return targets


def _parse(text: str) -> Target:
    if re.fullmatch(r"(tpu|dns):\d+", text) or not text.startswith(("tpu:", "dns:")):  # a machine may be named so
        return parse_address(text)
    if text.startswith("dns:"):
        address = parse_address(text.removeprefix("dns:"))
        return DnsName(address.host, address.port)
    if (match := _TPU.fullmatch(text)) is None:
        raise BadAddress(f"{_shown_text(text)}: is no name of a TPU; {_TPU_FORM}")
    project, zone, name, port = match.groups()
    return TpuName(name, zone or "", project or "", TPU_PORT if port is None else _port(port, text))


def parse_address(text: str) -> Address:
    """The address in `text`, with or without `grpc://`. Raises `BadAddress` with the reason if it is invalid."""
    shown = _shown_text(text)
    rest = text[len(_SCHEME) :] if text.lower().startswith(_SCHEME) else text
    if "://" in rest:
        raise BadAddress(f"{shown}: {rest.partition('://')[0]}:// is no scheme of a profiler service; {_FORM}")
    if any(character.isspace() for character in rest):
        raise BadAddress(f"{shown!r}: has a space in it; {_FORM}, several with commas between them")
    if "/" in rest:
        raise BadAddress(f"{shown}: has a path ('/') in it; {_FORM}")
    host, colon, port = rest.rpartition(":")
    if not colon or (rest.startswith("[") and rest.endswith("]")):
        raise BadAddress(f"{shown}: has no port; {_FORM}")
    if not (_HOST.fullmatch(host) or _IPV6.fullmatch(host)):
        hint = "a number of IPv6 stands in brackets, as in [::1]:6009" if ":" in host else _FORM
        raise BadAddress(f"{shown}: {host!r} is no name of a machine; {hint}")
    return Address(host.lower(), _port(port, text))


def _port(port: str, text: str) -> int:
    if not (re.fullmatch(r"[0-9]{1,5}", port) and 1 <= int(port) <= _HIGHEST_PORT):
        raise BadAddress(f"{_shown_text(text)}: {port!r} is no port; {_FORM}, with a port from 1 to {_HIGHEST_PORT}")
    return int(port)


def _shown_text(text: str) -> str:
    return text_of(text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…")


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
        lambda name: _look_up_dns(name) if isinstance(name, DnsName) else _look_up_tpu(name, gcloud_s), names, longest_s
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


def _look_up_dns(name: DnsName) -> _Resolved:
    """The IPv4 addresses of the name, or those of IPv6 if it has no others: a worker often has one of each."""
    try:
        entries = socket.getaddrinfo(name.host.strip("[]"), name.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # the latter for an empty or overlong part of a name
        return f"has no address in DNS ({getattr(error, 'strerror', None) or error}); check its spelling"
    numbers = sorted({ip_address(entry[4][0]) for entry in entries}, key=int)
    of_v4 = [number for number in numbers if number.version == 4]
    return tuple(_address(str(number), name.port) for number in of_v4 or numbers)


def _look_up_tpu(tpu: TpuName, patience_s: float) -> _Resolved:
    """The internal addresses of the TPU's workers, which TensorFlow's TPUClusterResolver returns as well."""
    command = ["gcloud", "compute", "tpus", "tpu-vm", "describe", tpu.name, "--format", "json"]
    command += ["--zone", tpu.zone] if tpu.zone else []
    command += ["--project", tpu.project] if tpu.project else []
    try:
        start = partial(subprocess.Popen, text=True, errors="replace", start_new_session=True)
        process = start(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
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
        return f"could not be looked up by gcloud: {shorten(reason, _MOST_REASON, placeholder=' …')}"
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


def silent(addresses: Sequence[Address], patience_s: float = PATIENCE_S) -> dict[Address, str]:
    """The addresses where no profiler service responds, each with the reason; all are tried in parallel.

    A reason completes a sentence that begins with the address.
    """
    longest_s = 2 * patience_s
    late = f"could not be reached within {longest_s:g} s; check the address"
    reasons = answers(lambda address: _why_silent(address, patience_s), addresses, longest_s)
    return {address: reason for address in addresses if (reason := reasons.get(address, late))}


def answers(ask: Callable[[Key], Answer], keys: Iterable[Key], longest_s: float) -> dict[Key, Answer]:
    """What `ask` returns for each key, asked in parallel; keys that take longer than `longest_s` are missing.

    Name resolution has no timeout, so threads that exceed their time are abandoned.
    """
    found: dict[Key, Answer] = {}
    threads = [threading.Thread(target=lambda key=key: found.update({key: ask(key)}), daemon=True) for key in keys]
    for thread in threads:
        thread.start()
    until = time.monotonic() + longest_s
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return dict(found)


def _why_silent(address: Address, patience_s: float) -> str:
    """Why no profiler service responds there; empty if one does."""
    try:
        connection = socket.create_connection((address.host.strip("[]"), address.port), patience_s)
    except (socket.gaierror, UnicodeError):  # the latter for an empty or overlong part of a name
        return "is the name of no machine that can be found; check its spelling"
    except ConnectionRefusedError:
        return f"has no profiler server listening; {HOW_TO_START}"
    except TimeoutError:
        return f"did not take the connection within {patience_s:g} s; check the address and the firewall"
    except OSError as error:
        return f"cannot be reached ({error.strerror or error})"
    with connection:
        return _why_no_service(connection, patience_s)


def _why_no_service(connection: socket.socket, patience_s: float) -> str:
    answer = b""
    try:
        connection.sendall(_HELLO)
        while len(answer) < _HEADER_BYTES and (more := connection.recv(_HEADER_BYTES - len(answer))):
            answer += more
    except TimeoutError:
        return f"accepted the connection, but sent nothing for {patience_s:g} s; has the program been stopped?"
    except OSError as error:
        return f"took the connection and broke it off ({error.strerror or error}); it is no profiler service"
    if len(answer) < _HEADER_BYTES or answer[_TYPE_AT] != _SETTINGS:
        return "is no profiler service: something else answers there; check the port"
    return ""
