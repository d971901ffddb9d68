"""Connects to Kafka with confluent_kafka, which only emitters, views and lookups need."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError

BROKERS = "WALLAROO_BROKERS"


def chosen_brokers(brokers: Iterable[str]) -> list[str]:
    """Return the brokers in the environment variable WALLAROO_BROKERS, or `brokers` if the variable is not set."""
    named = os.environ.get(BROKERS, "")
    return named.split(",") if named else list(brokers)


def kafka_client(what: str) -> Any:
    """Return the package confluent_kafka, which only some programs need.

    Args:
        what: Name of the class that needs the package, for the error.

    Raises:
        DiagnosticError: R728 if the package is not installed.
    """
    try:
        import confluent_kafka
    except ImportError as error:
        install = "'wallaroo-spark[kafka]'"
        finding = Diagnostic.no_package(what, "confluent_kafka", error, install)
        raise DiagnosticError([finding]) from error
    return confluent_kafka


def client_settings(
    brokers: Sequence[str], defaults: Mapping[str, Any], options: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the settings of a Kafka client. The program's `options` replace `defaults`."""
    # The client's log on stderr only repeats its errors.
    return {"bootstrap.servers": ",".join(brokers), "log_level": 0, **defaults, **(options or {})}
