"""Converts settings of librdkafka to settings of Kafka's Java client, which Spark uses, for secured brokers.

An application declares the connection to brokers once. Only sources in micro-batches use Spark's client, whose settings
have other names and forms. All else uses librdkafka.
"""

from collections.abc import Mapping
from pathlib import Path

from wallaroo.message.kafka_record import PREFIX
from wallaroo_runtime.errors import USAGE, RunError

_LOGIN = "org.apache.kafka.common.security.{}LoginModule required username={} password={};"
_MODULES = {"PLAIN": "plain.Plain", "SCRAM-SHA-256": "scram.Scram", "SCRAM-SHA-512": "scram.Scram"}
_KEYSTORE = {
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
    "ssl.certificate.location": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.key",
}
_TRUSTSTORE = {"ssl.ca.location": "ssl.truststore.location", "ssl.ca.pem": "ssl.truststore.certificates"}


def java_options(options: Mapping[str, str], part: str) -> dict[str, str]:
    """Return the options of a source or sink. Settings of librdkafka get the names and forms of Kafka's Java client.

    Args:
        options: Settings of the client, which begin with "kafka.", and options of Spark.
        part: Names the source or sink, for the error.

    Raises:
        RunError: R716 if a setting has no counterpart in Java, or names a file that cannot be read.

    Example:
        >>> java_options({"kafka.ssl.ca.location": "/etc/ca.pem", "minPartitions": "3"}, 'source "clicks"')
        {'minPartitions': '3', 'kafka.ssl.truststore.type': 'PEM', 'kafka.ssl.truststore.location': '/etc/ca.pem'}
    """
    left = dict(options)
    settings = {name.removeprefix(PREFIX): left.pop(name) for name in options if name.startswith(PREFIX)}
    return left | {PREFIX + name: value for name, value in _translated(settings, part).items()}


def _translated(settings: Mapping[str, str], part: str) -> dict[str, str]:
    translated: dict[str, str] = {}
    for name, value in settings.items():
        if name in _KEYSTORE:
            text = _read(name, value, part) if name.endswith(".location") else value
            translated |= {"ssl.keystore.type": "PEM", _KEYSTORE[name]: text}
        elif name in _TRUSTSTORE:
            translated |= {"ssl.truststore.type": "PEM", _TRUSTSTORE[name]: value}
        elif name == "sasl.mechanisms":
            translated["sasl.mechanism"] = value
        elif name == "ssl.endpoint.identification.algorithm":
            translated[name] = "" if value == "none" else value
        elif name == "enable.ssl.certificate.verification":
            if value != "true":
                raise _wrong(name, part, "Spark's client in Java always verifies", "give ssl.ca.location or ssl.ca.pem")
        elif name not in ("sasl.username", "sasl.password"):
            translated[name] = value
    if "sasl.username" in settings and "sasl.jaas.config" not in translated:
        translated["sasl.jaas.config"] = _login(translated.get("sasl.mechanism", ""), settings, part)
    return translated


def _login(mechanism: str, settings: Mapping[str, str], part: str) -> str:
    module = _MODULES.get(mechanism)
    if module is None:
        name = "sasl.username"
        reason = f"there is no login by name for sasl.mechanism {mechanism or '(none)'}"
        raise _wrong(name, part, reason, f"set sasl.mechanism to {', '.join(sorted(_MODULES))}")
    return _LOGIN.format(module, _quoted(settings["sasl.username"]), _quoted(settings.get("sasl.password", "")))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _read(name: str, path: str, part: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = f"{path}: {getattr(error, 'strerror', None) or error}"
        raise _wrong(name, part, reason, "name a file in PEM format that the driver can read") from error


def _wrong(name: str, part: str, reason: str, fix: str) -> RunError:
    return RunError.of("R716", USAGE, what=f"option {PREFIX}{name} of {part}", reason=reason, fix=fix)
