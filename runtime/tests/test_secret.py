"""Secrets of sources and sinks: in no document, archive or output, and there for those that connect."""

import json
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from wallaroo_runtime.cli.main import main
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.program.application import load_application
from wallaroo_runtime.topology import secret
from wallaroo_runtime.topology.override import broker_variables, with_brokers
from wallaroo_runtime.topology.secret import (
    REFERENCE,
    check_secrets,
    is_secret,
    references,
    resolved,
    secret_arguments,
    withheld,
)

CASES = Path(__file__).parents[2] / "tests" / "cases"
NAMES = (
    *("kafka.sasl.jaas.config", "kafka.sasl.password", "kafka.ssl.keystore.password", "kafka.ssl.key.password"),
    *("kafka.ssl.truststore.password", "kafka.ssl.keystore.key", "kafka.ssl.key.pem", "kafka.sasl.oauthbearer.config"),
    *("kafka.sasl.oauthbearer.client.secret", "kafka.sasl.oauthbearer.client.credentials.client.secret", "password"),
    *("fs.s3a.secret.key", "fs.s3a.access.key", "sfPassword", "apiKey", "accountKey", "awsSecretKey", "authToken"),
    *(
        "kafka.basic.auth.user.info",
        "privateKey",
        "passphrase",
        "Authorization",
        "Proxy-Authorization",
        "auth",
        "basicAuth",
    ),
    *(
        "bearer",
        "pass",
        "dbPass",
        "db_pass",
        "sas",
        "azure.SAS",
        "pat",
        "oauth",
        "oauth2",
        "cookie",
        "http.Cookie",
        "jwt",
        "db.pw",
        "creds",
        "encryptionKey",
        "master_key",
    ),
)
PLACES = (
    ("kafka.ssl.ca.location", "/etc/ca.pem"), ("kafka.ssl.key.location", "/etc/key.pem"), ("url", "jdbc:x://host/db"),
    ("kafka.sasl.oauthbearer.token.endpoint.url", "https://host/token"), ("kafka.sasl.username", "me"), ("path", "/d"),
    ("kafka.sasl.mechanism", "PLAIN"), ("kafka.security.protocol", "SASL_SSL"), ("kafka.linger.ms", "10"),
    ("auth.type", "basic"), ("useAuth", "true"), ("bypass", "S"), ("compass", "N"), ("pattern", "*.json"),
    ("format", "pat"),
    ("url", "https://host:8080/token:3"), ("query", "select basic information from t"), ("topic", "oauth"),
    ("ca", "-----BEGIN CERTIFICATE-----"),
)  # fmt: skip
WORD = some.text("abcdef0123456789", min_size=12, max_size=16).map("S3cret-{}".format)
URLS = some.sampled_from(
    (
        *(
            "amqp://me:{}@host/x",
            "jdbc:x://host/db?user=me&password={}",
            "AccountKey={};Host=h",
            "Bearer {}",
            "Basic {}",
        ),
        *("https://a.blob.core.windows.net/c?sv=1&sig={}", "https://b.s3.amazonaws.com/o?a=1&X-Amz-Signature={}"),
        *(
            "https://{}@host/x",
            "https://h/f?code={}",
            '{{"user": "me", "private_key": "{}"}}',
            "token: {}",
            "Authorization: Basic {}",
        ),
        *("-----BEGIN PRIVATE KEY-----\n{}", "-----BEGIN RSA PRIVATE KEY-----\n{}", '{{"authorization":"{}"}}'),
        *("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.{}", "ghp_0123456789abcdefg{}"),
    )
)
SECRETS = some.one_of(
    some.tuples(some.sampled_from(NAMES), WORD), some.tuples(some.just("url"), some.builds(str.format, URLS, WORD))
)
OPTIONS = some.lists(some.one_of(SECRETS, some.sampled_from(PLACES)), max_size=5).map(dict)


@settings(deadline=None)
@given(OPTIONS, OPTIONS)
def test_no_secret_is_in_a_document_and_each_is_there_for_those_that_connect(
    source: dict[str, str], sink: dict[str, str]
) -> None:
    given_options = (source, sink)
    before = {"pipelines": [{"sources": [{"name": "a", "options": source}], "sinks": [{"name": "a", "options": sink}]}]}
    kept = json.dumps(before)
    found, values = withheld(before)
    assert json.dumps(before) == kept and withheld(found) == (found, {})
    text = json.dumps(found)
    assert "S3cret" not in text
    assert sorted(values) == references(found) == sorted(set(REFERENCE.findall(text)))
    for (end,), options in zip(found["pipelines"][0].values(), given_options, strict=True):
        assert {name for name, value in end["options"].items() if value != options[name]} == {
            name for name, value in options.items() if "S3cret" in value
        }
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(secret, "_declared", values)
            assert resolved(end["options"]) == options


@given(some.lists(some.tuples(WORD, some.booleans()), min_size=1, max_size=4), some.none() | WORD)
def test_the_application_that_was_loaded_last_has_its_own(loaded: list[tuple[str, bool]], outside: str | None) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if outside is not None:
            patch.setenv("WALLAROO_PASSWORD", outside)
        for word, is_program in loaded:
            document = {"pipelines": [{"sources": [{"name": "a", "options": {"password": word}}]}]}
            found = (secret.declare if is_program else secret.without_secrets)(document)
            (end,) = found["pipelines"][0]["sources"]
            assert resolved(end["options"]) == {"password": word if is_program or outside is None else outside}


FORMS = some.sampled_from(
    (
        *("amqp://me:{}@host/x", "jdbc:x://host/db?user=me&password={}", "AccountKey={};Host=h", "Bearer {}"),
        *(
            "https://{}@host/x",
            "https://h/f?code={}",
            '{{"user": "me", "private_key": "{}"}}',
            "token: {}",
            "Authorization: Basic {}",
        ),
        *('org.x.PlainLoginModule required password="{}";', "<db><password>{}</password></db>"),
    )
)


@given(
    some.text(),
    some.text(),
    some.lists(some.tuples(FORMS, some.booleans()), min_size=1, max_size=3),
    WORD,
    WORD.map("not-{}".format),
)
def test_a_reference_is_no_secret_but_what_stands_beside_it_may_be_one(
    before: str, after: str, forms: list[tuple[str, bool]], word: str, outside: str
) -> None:
    assert not is_secret("password", "a${env:WORD}b") and is_secret("url", "user=${env:WORD}&password=word")
    text = " ".join(form.format(word if is_plain else "${env:WORD}") for form, is_plain in [("{}", False), *forms])
    assert is_secret("x", text) == any(is_plain for _, is_plain in forms)
    document = {"pipelines": [{"sources": [{"name": "a", "options": {"x": text, "y": f"{before}{text}"}}]}]}
    for keep in (secret.declare, secret.without_secrets):
        with pytest.MonkeyPatch.context() as patch:
            for known in ("_declared", "_written", "_used"):
                patch.setattr(secret, known, {})
            found = keep(document)
            assert word not in json.dumps(found)
            (end,) = found["pipelines"][0]["sources"]
            with pytest.raises(RunError, match="R608 .* needs WORD,"):
                resolved(end["options"])
            patch.setenv("WORD", outside)
            whole = text.replace("${env:WORD}", outside)
            assert resolved(end["options"]) == {"x": whole, "y": f"{before}{whole}"}
            assert word not in secret.hidden(f"cannot read {whole}: {after}") or not is_secret("x", text)


def test_what_is_no_document_stays_as_it_is() -> None:
    for value in (
        None,
        3,
        "x",
        [],
        {},
        {"pipelines": 3},
        {"pipelines": [3, {"sources": 3, "sinks": [3, {"options": 3}]}]},
    ):
        assert withheld(value) == (value, {})


def test_a_value_comes_from_the_environment_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"a": "x ${env:WALLAROO_WORD_OF_A_TEST} y", "b": "z"}
    with pytest.raises(RunError) as caught:
        resolved(options)
    assert str(caught.value) == (
        "R608 the application needs WALLAROO_WORD_OF_A_TEST, which is kept out of what is packed, stored and printed\n"
        "  fix: set the variable WALLAROO_WORD_OF_A_TEST for this command, or WALLAROO_WORD_OF_A_TEST_FILE to the path "
        "of a file that has the value"
    )
    file = tmp_path / "word"
    monkeypatch.setenv("WALLAROO_WORD_OF_A_TEST_FILE", str(file))
    with pytest.raises(RunError, match="R616"):
        resolved(options)
    file.write_text("from a file\n", encoding="utf-8")
    assert resolved(options) == {"a": "x from a file y", "b": "z"}
    monkeypatch.setenv("WALLAROO_WORD_OF_A_TEST", "given")
    assert resolved(options) == {"a": "x given y", "b": "z"}


@given(some.sets(some.sampled_from("ABCDEF"), min_size=1), some.sets(some.sampled_from("ABCDEF")))
def test_all_values_that_are_missing_are_named_at_once(needed: set[str], there: set[str]) -> None:
    options = {f"option.{name}": f"${{env:WALLAROO_TEST_{name}}}" for name in needed}
    document = {"pipelines": [{"sources": [{"name": "a", "options": options}], "sinks": []}]}
    missing = [f"WALLAROO_TEST_{name}" for name in sorted(needed - there)]
    with pytest.MonkeyPatch.context() as patch:
        for name in there:
            patch.setenv(f"WALLAROO_TEST_{name}", "x")
        if not missing:
            check_secrets(document)
            return
        with pytest.raises(RunError) as caught:
            check_secrets(document)
    assert str(caught.value).startswith(f"R608 the application needs {', '.join(missing)}, which ")


@given(
    some.lists(
        some.one_of(
            some.tuples(some.sampled_from(("db-password", "token", "pass")), WORD, some.booleans()),
            some.tuples(some.sampled_from(("rate", "in", "auth-type")), some.just("7"), some.booleans()),
        )
    )
)
def test_arguments_that_look_like_secrets(given_arguments: list[tuple[str, str, bool]]) -> None:
    arguments: list[str] = []
    for name, value, is_one in given_arguments:
        arguments += [f"--{name}={value}"] if is_one else [f"--{name}", value]
    expected = [f"--{name}" for name, value, _ in given_arguments if value.startswith("S3cret")]
    assert [*secret_arguments(arguments)] == expected


PROGRAM = """
import os
import wallaroo

@wallaroo.line_decoder
def decode(data): return data.decode()

@wallaroo.line_encoder
def encode(text): return text

def application_setup(args):
    word = os.environ.get("WORD_OF_THE_MACHINE", "none here")
    brokers = [("127.0.0.1", "9092")]
    options = {{"kafka.sasl.password": word, "kafka.sasl.jaas.config": f'x required password="{{word}}";'}}
    source = wallaroo.SparkSourceConfig("jdbc", {{"url": f"jdbc:x://me:{{word}}@host/x", "password": word}}, decode)
    lines = wallaroo.source("in", source)
    return wallaroo.build_application("secret", lines.to_sink(wallaroo.SparkSinkConfig("jdbc", options, encode)))
"""


@pytest.mark.slow
def test_no_output_has_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    program, archive = tmp_path / "app.py", tmp_path / "app.tar.gz"
    program.write_text(PROGRAM.replace("{{", "{").replace("}}", "}"), encoding="utf-8")
    monkeypatch.setenv("WORD_OF_THE_MACHINE", "S3cret")
    assert main(["pack", str(program), "-o", str(archive), "--db-password=word"]) == 0
    said = capsys.readouterr()
    assert (
        "carries the argument --db-password, which looks like a secret; let the program read it where it runs"
        in said.err
    )
    needed = ("WALLAROO_KAFKA_SASL_JAAS_CONFIG", "WALLAROO_KAFKA_SASL_PASSWORD", "WALLAROO_PASSWORD", "WALLAROO_URL")
    for name in needed:
        assert f"needs {name} in the environment where it runs, or {name}_FILE, the path of a file" in said.err
    with tarfile.open(archive) as packed:
        contents = {member.name: packed.extractfile(member) for member in packed.getmembers()}
        texts = [file.read() for file in contents.values() if file is not None]
    assert texts and not any(b"S3cret" in text for text in texts)
    monkeypatch.delenv("WORD_OF_THE_MACHINE")
    monkeypatch.setattr(secret, "_declared", {})
    monkeypatch.setattr(secret, "_written", {})
    assert main(["run", str(archive), "--checkpoint", str(tmp_path / "checkpoint")]) == 2
    assert f"R608 the application needs {', '.join(needed)}, which are kept out" in capsys.readouterr().err
    assert not (tmp_path / "checkpoint").exists()
    for name in needed:
        monkeypatch.setenv(name, f"other {name}")
    application = load_application(str(archive), (), "", "")
    (source,) = application.topology.sources()
    assert resolved(source.options) == {name: f"other WALLAROO_{name.upper()}" for name in ("url", "password")}  # type: ignore[attr-defined]
    for command in ("emit", "explain", "validate", "graph"):
        for app in (program, archive):
            main([command, str(app)])
            output = capsys.readouterr()
            assert "S3cret" not in output.out + output.err and "other WALLAROO" not in output.out + output.err


CLUSTERS = some.lists(
    some.sampled_from((("east:9092",), ("west:9092", "west:9093"), ("west:9093", "west:9092"))), min_size=1
)


@given(CLUSTERS, some.data())
def test_each_cluster_has_a_variable_of_its_own(clusters: list[tuple[str, ...]], data: some.DataObject) -> None:
    ends = [{"name": data.draw(some.sampled_from("ab")), "brokers": list(each)} for each in clusters]
    found = broker_variables({"pipelines": [{"sources": ends, "sinks": []}]})
    by_variable: dict[str, set[frozenset[str]]] = {}
    for (_, brokers), variable in found.items():
        by_variable.setdefault(variable, set()).add(frozenset(brokers))
    assert all(len(each) == 1 for each in by_variable.values())
    assert ("WALLAROO_BROKERS" in by_variable) == (len({frozenset(each) for each in clusters}) == 1)


TWO_CLUSTERS = """
import wallaroo

@wallaroo.line_decoder
def decode(data): return data.decode()

@wallaroo.line_encoder
def encode(text): return text

def application_setup(args):
    source = wallaroo.KafkaSourceConfig("in", [("east", "9092")], "Warn", decode)
    sink = wallaroo.KafkaSinkConfig("out", [("west", "9092")], "Warn", 0, 0, encode)
    return wallaroo.build_application("two", wallaroo.source("orders", source).to_sink(sink))
"""


@pytest.mark.slow
def test_one_variable_does_not_make_one_cluster_of_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "app.py"
    program.write_text(TWO_CLUSTERS, encoding="utf-8")
    (source,), (sink,) = (ends for ends in load_ends(program))
    monkeypatch.setenv("WALLAROO_BROKERS", "here:9092")
    with pytest.raises(RunError) as caught:
        load_ends(program)
    assert str(caught.value) == (
        "R608 WALLAROO_BROKERS gives the brokers of one cluster; the application has topics of "
        "east:9092; west:9092\n"
        f"  fix: give WALLAROO_ORDERS_BROKERS, WALLAROO_{sink.name.upper()}_BROKERS instead, as far as they are to be "
        "others"
    )
    monkeypatch.delenv("WALLAROO_BROKERS")
    monkeypatch.setenv("WALLAROO_ORDERS_BROKERS", "here:9092,there:9092")
    (moved,), (same,) = load_ends(program)
    assert (list(moved.brokers), list(same.brokers)) == (["here:9092", "there:9092"], ["west:9092"])
    assert source.name == moved.name


@pytest.mark.parametrize(
    ("value", "broker", "reason"),
    [
        ("here", "here", "it has no port"),
        ("here:9092,", "", "it has no port"),
        (":9092", ":9092", "it has no host"),
        ("here:0", "here:0", "0 is not the port of a broker"),
        ("here:9092,there:65536", "there:65536", "'65536' is not a port"),
        ("here:x", "here:x", "'x' is not a port"),
        ("SSL://::1:9092", "::1:9092", "an IPv6 address is written in brackets, as in [::1]:7010"),
        ("orders@here:9092", "orders@here:9092", "a name is of no use here"),
    ],
)
@pytest.mark.parametrize("variable", ["WALLAROO_BROKERS", "WALLAROO_ORDERS_BROKERS"])
def test_a_variable_of_brokers_has_addresses(variable: str, value: str, broker: str, reason: str) -> None:
    sink = "other" if variable == "WALLAROO_ORDERS_BROKERS" else "one"
    ends = [{"name": name, "brokers": [f"{cluster}:1"]} for name, cluster in (("orders", "one"), ("out", sink))]
    document = {"pipelines": [{"sources": ends[:1], "sinks": ends[1:]}]}
    with pytest.raises(RunError) as caught:
        with_brokers(cast(Any, SimpleNamespace(document=document)), {variable: value})
    assert str(caught.value) == (
        f'T211 {variable}: broker address "{broker}" is not usable; {reason}\n'
        "  fix: give HOST:PORT with a port of at most 65535"
    )


def test_a_variable_of_brokers_is_read_before_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WALLAROO_BROKERS", "here")
    with pytest.raises(RunError, match="T211 WALLAROO_BROKERS: broker"):
        load_application("nowhere.py", (), "", "")


def load_ends(program: Path) -> tuple[Any, Any]:
    topology = load_application(str(program), (), "", "").topology
    return [*topology.sources()], [*topology.sinks()]


@given(sizes=some.lists(some.integers(6, 12), min_size=2, max_size=4, unique=True), data=some.data())
def test_nothing_is_left_of_a_secret_that_begins_with_another(sizes: list[int], data: Any) -> None:
    words = ["correct-horse"[:size] for size in sizes]
    used = {f"V{number}": word for number, word in enumerate(words)}
    chosen = data.draw(some.sampled_from(words))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secret, "_used", used)
        name = next(name for name, word in used.items() if word == chosen)
        assert secret.hidden(f"at {chosen}.") == f"at ${{env:{name}}}."
