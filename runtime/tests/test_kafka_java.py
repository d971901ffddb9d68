"""Settings of librdkafka in the form of Kafka's client in Java; tests/test_kafka_secured.py has them at a broker."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.kafka import client
from wallaroo_runtime.kafka.consumer import make_consumer
from wallaroo_runtime.kafka.java import java_options

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"))
LOGIN = re.compile(r'(\S+) required username=("(?:[^"\\]|\\.)*") password=("(?:[^"\\]|\\.)*");')


@given(TEXT, TEXT, st.sampled_from(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]))
def test_a_login_is_read_as_it_was_said(user: str, password: str, mechanism: str) -> None:
    said = {"kafka.sasl.mechanisms": mechanism, "kafka.sasl.username": user, "kafka.sasl.password": password}
    found = java_options(said, "a source")
    assert found.keys() == {"kafka.sasl.mechanism", "kafka.sasl.jaas.config"}
    read = LOGIN.fullmatch(found["kafka.sasl.jaas.config"])
    assert read is not None
    assert [re.sub(r"\\(.)", r"\1", each[1:-1]) for each in read.groups()[1:]] == [user, password]
    assert found["kafka.sasl.mechanism"] == mechanism
    assert read[1].split(".")[-1] == ("PlainLoginModule" if mechanism == "PLAIN" else "ScramLoginModule")


@given(st.dictionaries(st.sampled_from(["kafka.acks", "minPartitions", "kafka.ssl.protocol", "sasl.username"]), TEXT))
def test_other_options_stay_as_they_are(options: dict[str, str]) -> None:
    assert java_options(options, "a source") == options


def test_certificates_are_those_of_the_files(tmp_path: Path) -> None:
    for name in ("chain", "key"):
        (tmp_path / name).write_text(f"the {name}")
    said = {
        "kafka.ssl.certificate.location": str(tmp_path / "chain"), "kafka.ssl.key.location": str(tmp_path / "key"),
        "kafka.ssl.ca.pem": "the authority", "kafka.ssl.endpoint.identification.algorithm": "none",
    }  # fmt: skip
    assert java_options(said, "a source") == {
        "kafka.ssl.keystore.type": "PEM", "kafka.ssl.keystore.certificate.chain": "the chain",
        "kafka.ssl.keystore.key": "the key", "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": "the authority", "kafka.ssl.endpoint.identification.algorithm": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("sasl.username", "ann", "there is no login by name for sasl.mechanism (none)"),
        ("ssl.key.location", "/nowhere/key.pem", "/nowhere/key.pem: No such file or directory"),
        ("enable.ssl.certificate.verification", "false", "Spark's client in Java always verifies"),
    ],
)
def test_what_java_does_not_have(option: str, value: str, text: str) -> None:
    with pytest.raises(RunError) as caught:
        java_options({f"kafka.{option}": value}, 'source "clicks"')
    assert f'R716 option kafka.{option} of source "clicks" is not usable; {text}' in str(caught.value)


@pytest.mark.parametrize(
    ("option", "fix"),
    [
        ("buffer.memory", "give kafka.queue.buffering.max.kbytes in its place"),
        ("default.api.timeout.ms", "give kafka.socket.timeout.ms in its place"),
        ("max.block.ms", "leave it out"),
        ("partitioner.class", "give kafka.partitioner in its place"),
        ("receive.buffer.bytes", "give kafka.socket.receive.buffer.bytes in its place"),
        ("sasl.jaas.config", "give kafka.sasl.username and kafka.sasl.password in its place"),
        ("ssl.keystore.key", "give kafka.ssl.key.pem in its place"),
        ("ssl.truststore.certificates", "give kafka.ssl.ca.pem in its place"),
        ("ssl.truststore.type", "leave it out"),
    ],
)
def test_a_setting_of_java_names_that_of_librdkafka(option: str, fix: str) -> None:
    with pytest.raises(RunError) as caught:
        make_consumer("127.0.0.1:1", {option: "1"}, "clicks")
    (finding,) = caught.value.diagnostics
    assert finding.code == "R716"
    assert finding.fix == (
        f"{fix}: it is a setting of Kafka's client in Java; in real-time mode, confluent_kafka reads, with librdkafka"
    )


def test_the_counterparts_are_settings_of_librdkafka() -> None:
    for instead in filter(None, client._COUNTERPARTS.values()):
        for name in instead.split(" and kafka."):
            with pytest.raises(RunError) as caught:
                make_consumer("127.0.0.1:1", {name: "", "no.such": ""}, "clicks")
            assert f'"{name}"' not in str(caught.value) or "No such" not in str(caught.value)


@pytest.mark.parametrize("option", ["stats_cb", "throttle_cb"])
def test_a_callback_is_no_option_of_a_source(option: str) -> None:
    with pytest.raises(RunError, match=f'R716 an option of source "clicks" is not usable; .*{option}'):
        make_consumer("127.0.0.1:1", {option: "print"}, "clicks")
