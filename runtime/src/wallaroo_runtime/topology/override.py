"""Replaces addresses in a topology by addresses of the command line and the environment."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wallaroo.diagnostic.diagnostic import closest
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.topology.check_by_kind import LAST_PORT, PORT_DIGITS
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.topology.secret import free_name, variable_of

BROKERS = "WALLAROO_BROKERS"  # the SDKs read the same variable for groups of Goka


@dataclass(frozen=True, slots=True)
class NamedAddress:
    """A HOST:PORT for the source or sink `name`. If `name` is empty, it is for the next one without an address."""

    name: str
    host: str
    port: int


def parse_addresses(text: str, what: str) -> list[NamedAddress]:
    """Read `[NAME@]HOST:PORT,...`. An IPv6 address is in brackets.

    Args:
        text: The value of `--in` or `--out`.
        what: `source` or `sink`, for the error.

    Raises:
        RunError: T211 if the text has another form.

    Example:
        >>> parse_addresses("votes@127.0.0.1:7010,[::1]:7011", "source")
        [NamedAddress(name='votes', host='127.0.0.1', port=7010), NamedAddress(name='', host='::1', port=7011)]
    """
    return [_parse(item, what) for item in text.split(",")]


def parse_address(what: str, text: str) -> tuple[str, int]:
    """Read one HOST:PORT.

    Args:
        what: The option, for the error.

    Raises:
        RunError: T211 if the text has another form.

    Example:
        >>> parse_address("--host", "127.0.0.1:7010")
        ('127.0.0.1', 7010)
    """
    address = _parse(text, what)
    if address.name:
        reason = "a name is of no use here"
        raise RunError.of("T211", USAGE, what=what, value=json.dumps(text, ensure_ascii=False), reason=reason)
    return address.host, address.port


def parse_brokers(variable: str, text: str) -> list[str]:
    """Read a list HOST:PORT,... of brokers. Each address may have a protocol in front.

    Args:
        variable: Environment variable or option with the text, for the error.
        text: Its value.

    Raises:
        RunError: T211 if the text has another form.

    Example:
        >>> parse_brokers("WALLAROO_BROKERS", "127.0.0.1:9092,SSL://[::1]:9093")
        ['127.0.0.1:9092', 'SSL://[::1]:9093']
    """
    for broker in text.split(","):
        _, port = parse_address(f"{variable}: broker", broker.rpartition("://")[2])
        if not port:
            value, reason = json.dumps(broker, ensure_ascii=False), "0 is not the port of a broker"
            raise RunError.of("T211", USAGE, what=f"{variable}: broker", value=value, reason=reason)
    return text.split(",")


def _parse(item: str, what: str) -> NamedAddress:
    name, _, rest = item.rpartition("@")
    host, colon, port = rest.rpartition(":")
    reason = ""
    if not colon or not host:
        reason = "it has no port" if not colon else "it has no host"
    elif not (port.isascii() and port.isdigit() and len(port) <= PORT_DIGITS and int(port) <= LAST_PORT):
        reason = f"{port[:80]!r} is not a port"
    elif host.startswith("[") != host.endswith("]") or (":" in host and not host.startswith("[")):
        reason = "an IPv6 address is written in brackets, as in [::1]:7010"
    if reason:
        raise RunError.of("T211", USAGE, what=what, value=json.dumps(item, ensure_ascii=False), reason=reason)
    return NamedAddress(name, host.strip("[]"), int(port))


def override(topology: Topology, inputs: str, outputs: str) -> Topology:
    """Return the topology with other addresses for its sources and sinks.

    Args:
        inputs: The value of `--in`. If it is empty, the sources keep their addresses.
        outputs: The value of `--out`. If it is empty, the sinks keep their addresses.

    Raises:
        RunError: T211 if an address is wrong. R608 if there are more addresses than sources or sinks, or if no source
            or sink has a given name.
    """
    document = json.loads(json.dumps(topology.document))
    for option, what, text in (("--in", "source", inputs), ("--out", "sink", outputs)):
        ends = [end for pipeline in document["pipelines"] for end in pipeline[f"{what}s"] if "host" in end]
        if text:
            _put(ends, parse_addresses(text, what), option, what)
    return load_document(document)


def broker_variables(document: Mapping[str, Any]) -> dict[tuple[str, tuple[str, ...]], str]:
    """Return, by name and brokers of each Kafka source or sink, the environment variable that replaces the brokers.

    If the application uses one Kafka cluster, all sources and sinks have the same variable. Else each has its own.
    """
    ends = [(end["name"], tuple(end["brokers"])) for end in _ends_with_brokers(document)]
    if len({frozenset(brokers) for _, brokers in ends}) < 2:
        return dict.fromkeys(ends, BROKERS)
    variables, taken = dict[tuple[str, tuple[str, ...]], str](), dict[str, str]()
    for name, brokers in sorted(set(ends)):
        cluster = ",".join(sorted(brokers))
        variables[name, brokers] = variable = free_name(variable_of(f"{name}_brokers"), cluster, taken)
        taken[variable] = cluster
    return variables


def with_brokers(topology: Topology, environment: Mapping[str, str]) -> Topology:
    """Return the topology with the brokers that environment variables name, in place of brokers in the document.

    Raises:
        RunError: R608 if one variable would replace several clusters, T211 if a value is no list of addresses.
    """
    document = json.loads(json.dumps(topology.document))
    variables = broker_variables(document)
    if environment.get(BROKERS) and variables and BROKERS not in variables.values():
        clusters = "; ".join(dict.fromkeys(",".join(brokers) for _, brokers in variables))
        reason = f"{BROKERS} gives the brokers of one cluster; the application has topics of {clusters}"
        fix = f"give {', '.join(dict.fromkeys(variables.values()))} instead, as far as they are to be others"
        raise RunError.of("R608", USAGE, reason=reason, fix=fix)
    for end in _ends_with_brokers(document):
        if value := environment.get(variables[end["name"], tuple(end["brokers"])]):
            end["brokers"] = parse_brokers(variables[end["name"], tuple(end["brokers"])], value)
    return load_document(document)


def _ends_with_brokers(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for pipeline in document["pipelines"]:
        yield from (end for end in (*pipeline["sources"], *pipeline["sinks"]) if "brokers" in end)


def _put(ends: Sequence[dict[str, Any]], addresses: Sequence[NamedAddress], option: str, what: str) -> None:
    free = list(ends)
    for address in sorted(addresses, key=lambda address: not address.name):
        names = [end["name"] for end in free]
        if address.name and address.name not in names:
            close = closest(address.name, names)
            fix = f"did you mean {close}@?" if close else f"use one of {', '.join(names) or 'none, all are given'}"
            raise RunError.of("R608", USAGE, reason=f'{option}: no {what} is called "{address.name}"', fix=fix)
        if not free:
            reason = f"{option} has {len(addresses)} addresses; the application has {len(ends)} {what}s"
            raise RunError.of("R608", USAGE, reason=reason, fix=f"give at most {len(ends)}")
        end = free.pop(names.index(address.name) if address.name else 0)
        end["host"], end["port"] = address.host, address.port
