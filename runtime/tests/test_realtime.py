"""What real-time mode refuses before anything starts, and what `explain` says of it."""

import base64
import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.maintenance.rescale import Wanted, rescale
from wallaroo_runtime.peer.remote import RemoteOptions
from wallaroo_runtime.plan import NodeKind, compile_topology
from wallaroo_runtime.plan.block import blocks_of
from wallaroo_runtime.plan.realtime import in_realtime, obstacles
from wallaroo_runtime.run.realtime import check_realtime
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.spark.failure.cause import causes_of
from wallaroo_runtime.spark.machine import jar
from wallaroo_runtime.spark.machine.master import cluster_of
from wallaroo_runtime.spark.machine.settings import start_settings
from wallaroo_runtime.spark.realtime.query import query_error
from wallaroo_runtime.spark.realtime.settings import RunningWorker, Services, operator_settings
from wallaroo_runtime.topology.error_policy import ErrorPolicy, stop_at_dead_letter
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.worker.spec import WorkerSpec

ERRORS = Path(__file__).parents[2] / "topology-schema" / "errors.json"
VALID = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"
NAMES = sorted(path.name for path in VALID.glob("*.json"))
JAVA = Path(__file__).parents[1] / "java" / "src" / "main" / "java"
FAILURE = re.compile(r'OperatorFailure\.of\(\s*"([A-Z]\d{3})"(.*?)\);', re.DOTALL)
WORD_COUNT = json.loads((VALID / "word_count.json").read_bytes())


def found_in(document: dict[str, Any]) -> list[str]:
    topology = load_document(document)
    plan = compile_topology(topology, shuffle_partitions=1)
    findings = obstacles(plan, topology)
    assert {finding.code for finding in findings} <= {"R755"}
    return [f"{finding.message.partition(': ')[2]}{finding.pointer}" for finding in findings]


def test_a_word_count_can_run() -> None:
    assert found_in(WORD_COUNT) == []


def topics() -> dict[str, Any]:
    """Return the word count, over Kafka."""
    document = json.loads((VALID / "word_count.json").read_bytes())
    kafka = {"kind": "kafka", "brokers": ["127.0.0.1:9092"], "options": {}}
    ((source,), (sink,)) = (document["pipelines"][0][parts] for parts in ("sources", "sinks"))
    for part, more in ((source, {"start": "start"}), (sink, {"exactly_once": True})):
        for name in ("host", "port", "framing"):
            part.pop(name, None)
        part |= kafka | {"topic": part["name"]} | more
    return document


def test_topics_can_run_that_the_gateway_reads_and_the_egress_writes() -> None:
    document = topics()
    assert found_in(document) == []
    ((source,), (sink,)) = (document["pipelines"][0][parts] for parts in ("sources", "sinks"))
    del sink["exactly_once"]
    assert found_in(document) == []
    source["options"] = {"kafka.fetch.min.bytes": "1", "minPartitions": "3"}
    assert found_in(document) == [
        f'option minPartitions of source "{source["name"]}", an option of Spark, which does not read it/0/sources/0',
    ]


def test_sources_in_the_code_of_two_workers_are_refused() -> None:
    document = json.loads((VALID / "shared_state.json").read_bytes())
    document["workers"].append({**document["workers"][0], "name": "other"})
    (second,) = document["pipelines"][1]["sources"]
    second |= {"worker": "other", "codec": "string"}
    assert found_in(document) == ["sources of 2 workers, main, other; one worker must have them all"]


@given(st.sampled_from(NAMES))
def test_what_is_not_refused_has_the_shape_that_the_operators_take(name: str) -> None:
    topology = load_document(json.loads((VALID / name).read_bytes()))
    plan = compile_topology(topology, shuffle_partitions=1)
    nodes = [node for stage in plan.stages for node in stage.nodes]
    fits = (
        len([stage for stage in plan.levels[0] if stage.entries[0].kind is NodeKind.SOURCE]) == 1
        and not any(node.visits for node in nodes)
        and {source.kind for source in topology.sources()} <= {"tcp", "generator", "kafka"}
        and all(name.startswith("kafka.") for each in topology.sources() for name in getattr(each, "options", ()))
        and {sink.kind for sink in topology.sinks()} <= {"tcp", "kafka"}
    )
    assert (obstacles(plan, topology) == []) == fits
    assert (in_realtime(plan, topology)[0] == "refused:") == (not fits)


@given(st.sampled_from(NAMES))
def test_blocks_of_states_depend_on_no_other_stage(name: str) -> None:
    plan = compile_topology(load_document(json.loads((VALID / name).read_bytes())), shuffle_partitions=1)
    blocks = blocks_of(plan)
    with_state = [stage.id for stage in plan.stages if stage.has_state]
    assert [blocks[each] for each in with_state] == list(range(len(with_state)))
    receiving = [stage for stage in plan.stages if not stage.has_state and stage is not plan.levels[0][0]]
    end = len(with_state)
    for stage in receiving:
        assert blocks[stage.id] == end
        end += len(stage.entries) * (end + 1)


def test_explain_says_both_modes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(VALID / "word_count.json")]) == 0
    text = capsys.readouterr().out
    assert "publishes the staged output to the outbox" in text
    assert "transformWithState s1: 4 buckets, calls that stay open" in text.partition("in real-time mode")[2]


@pytest.mark.slow
def test_options_that_it_cannot_serve(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    app = VALID.parents[3] / "tests" / "cases" / "word_count" / "app.py"
    new = tmp_path / "new"
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text("0123456789abcdef" * 3)
    services = ["--gateway", "Split and Count=127.0.0.1:1", "--gateway", "127.0.0.1:2", "--egress", "127.0.0.1:3"]
    place = [
        "--master",
        "spark://127.0.0.1:4",
        "--checkpoint",
        f"file://{new}",
        "--conf",
        f"spark.wallaroo.service.tokenFile={token}",
    ]
    options = ["--mode", "realtime", *place, *services, "--json"]
    code = main(["run", str(app), "--in", "127.0.0.1:0", "--out", "127.0.0.1:1", *options])
    assert code == 2
    found = [each for each in json.loads(capsys.readouterr().err.splitlines()[-1]) if each["code"] == "R755"]
    assert len(found) == 2 and "2 gateways" in found[0]["message"] and "spark://127.0.0.1:4" in found[1]["message"]
    assert not new.exists()


@given(st.dictionaries(st.sampled_from(["", "Split and Count", "Other"]), st.just("one:7100")), st.booleans())
def test_remote_services_are_no_obstacle_but_several_gateways(gateways: dict[str, str], has_egress: bool) -> None:
    remote = RemoteOptions(gateways, "two:7101" if has_egress else "")
    refused = False
    try:
        check_realtime(load_document(WORD_COUNT), master="local[2]", remote=remote)
    except RunError as error:
        refused = [each.code for each in error.diagnostics] == ["R755"]
    assert refused == (len(gateways) > 1)


def test_two_gateways_are_refused() -> None:
    remote = RemoteOptions({"Split and Count": "one:7100", "": "two:7100"}, "three:7101")
    with pytest.raises(RunError) as caught:
        check_realtime(load_document(WORD_COUNT), master="local", remote=remote)
    (finding,) = caught.value.diagnostics
    what = "2 gateways: one gateway must order the messages of all sources in its journal"
    assert finding.message == f"real-time mode cannot run this: {what}"
    assert finding.fix == "give one --gateway HOST:PORT for all sources; or leave out --mode"


def test_settings_have_no_token() -> None:
    """Spark shows them in plans, logs and its web interface."""
    plan = compile_topology(load_document(WORD_COUNT), shuffle_partitions=1)
    services = [Service(kind, f"{kind}:7100", "the-secret-token", "PEM", 7, "0a") for kind in ("gateway", "egress")]
    worker = RunningWorker(
        WorkerSpec.of(load_document(WORD_COUNT), load_document(WORD_COUNT).workers[0]), {"python": "python3"}, "/w"
    )
    running = dict.fromkeys({stage.worker for stage in plan.stages}, worker)
    text = operator_settings(plan, running, Services("", *services), ErrorPolicy(fails=False))
    assert "secret" not in text and "PEM" not in text
    found = json.loads(text)
    assert (found["journal"], found["journal_id"], found["gateway"], found["egress_epoch"]) == (
        "",
        "0a",
        "gateway:7100",
        7,
    )


SPARK_JARS = Path(str(find_spec("pyspark") and find_spec("pyspark").origin)).parent / "jars"  # type: ignore[union-attr]


def masters_of_spark() -> set[str]:
    """Return the patterns of masters that Spark's own classes know."""
    (core,) = SPARK_JARS.glob("spark-core_*.jar")
    with ZipFile(core) as classes:
        data = classes.read("org/apache/spark/SparkMasterRegex$.class")
    found = re.findall(rb"(?:local(?:-cluster)?\\\[|[a-z0-9]+://\()[ -~]*", data)
    return {pattern.decode() for pattern in found}


PATTERNS = sorted(masters_of_spark())
MASTERS = st.one_of(
    st.sampled_from(["local", "yarn", "k8s://https://h:1", "spark://a:7077,b:7077"]),
    st.sampled_from(PATTERNS).flatmap(lambda pattern: st.from_regex(re.compile(pattern, re.ASCII), fullmatch=True)),
)


def test_spark_knows_these_kinds_of_masters() -> None:
    assert {re.split(r"[\\:]", pattern)[0] for pattern in PATTERNS} == {"local", "local-cluster", "spark", "k8s"}


@given(MASTERS)
@example("local[ 2]")
@example("local-cluster[2,1,1024]")
def test_a_master_in_another_jvm_is_refused_and_a_local_one_is_not(master: str) -> None:
    threads = [
        found[1] for pattern in PATTERNS if pattern.startswith(r"local\[") and (found := re.fullmatch(pattern, master))
    ]
    is_local = master == "local" or any(number == "*" or int(number) > 0 for number in threads)
    document = load_document(WORD_COUNT)
    plan = compile_topology(document, shuffle_partitions=1)
    assert (in_realtime(plan, document, cluster=cluster_of(master))[0] == "refused:") == (not is_local)
    try:
        check_realtime(document, master=master, remote=RemoteOptions())
    except RunError as error:
        (finding,) = error.diagnostics
        assert not is_local
        assert str(finding) == (
            f"R755 real-time mode cannot run this: the cluster {master}; it needs a local Spark master\n"
            "  fix: leave out --mode: micro-batches run there; or give --master local[*], without --deploy-mode, to "
            "use this machine"
        )
    else:
        assert is_local


def test_another_spark_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jar, "version", lambda name: "4.2.0")
    with pytest.raises(RunError, match="R755 real-time mode cannot run this: PySpark 4.2.0"):
        jar.check_spark()


def test_a_missing_jar_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(jar, "NAME", "other.jar")
    with pytest.raises(
        RunError, match=r"R758 the runtime's Java classes cannot be used; they are not built, there is no .*other.jar"
    ):
        start_settings("local[1]", tmp_path, {})
    assert not any(tmp_path.iterdir()), "before anything is started"


def test_a_checkpoint_keeps_its_mode(tmp_path: Path) -> None:
    topology = load_document(WORD_COUNT)
    for mode, other in (("realtime", "microbatch"), ("microbatch", "realtime")):
        place = HeldDirectory.take(tmp_path / mode)
        try:
            Checkpoint.open(place, topology, shuffle_partitions=1, buckets_per_partition=8, mode=mode)
            assert Checkpoint.open(place, topology, shuffle_partitions=1, buckets_per_partition=8, mode=mode).continues
            with pytest.raises(RunError, match=f"R757 .* has the mode {mode}"):
                Checkpoint.open(place, topology, shuffle_partitions=1, buckets_per_partition=8, mode=other)
        finally:
            place.release()


def test_a_checkpoint_in_real_time_mode_with_remote_services_keeps_its_buckets(tmp_path: Path) -> None:
    place = HeldDirectory.take(tmp_path / "checkpoint")
    try:
        remote, topology = RemoteOptions(egress="localhost:7101"), load_document(WORD_COUNT)
        Checkpoint.open(place, topology, shuffle_partitions=1, buckets_per_partition=8, mode="realtime", remote=remote)
    finally:
        place.release()
    reason = "real-time mode can be rescaled only on one machine, but its journal or its outbox is at a remote service"
    with pytest.raises(RunError, match=f"R663 .* cannot be rescaled; {reason}"):
        rescale(tmp_path / "checkpoint", Wanted(buckets=4))


def report_of(value: dict[str, Any]) -> str:
    packed = base64.b64encode(json.dumps(value).encode()).decode()
    return f"Job aborted: R756\nwallaroo-operator:{packed}:\n\tat org.apache.spark"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            {"code": "R756", "values": {"start": "10", "end": "90", "covered": "50"}},
            "R756 a batch from 10 of the journal would end at 90, but its changes and outputs are stored up to 50",
        ),
        (
            {
                "code": "I902",
                "values": {
                    "what": "real-time mode",
                    "effect": "the states were not stored",
                    "reason": "3 left by port 7",
                },
            },
            "I902 the message counts of real-time mode do not agree, so the states were not stored; 3 left by port 7",
        ),
        ({"code": "W410", "values": {"worker": "main", "reason": "it said so"}}, "W410"),
        ({"worker": "main", "reported": {"code": "W403", "message": "no such step", "line": 0}}, "W403 no such step"),
        ({"found": [{"code": "R644", "message": "another driver", "fix": "stop it"}]}, "R644 another driver"),
    ],
)
def test_errors_of_operators_keep_their_code(value: dict[str, Any], expected: str, tmp_path: Path) -> None:
    error = query_error(causes_of(report_of(value)), "", tmp_path / "spark.log", ErrorPolicy())
    assert str(error).startswith(expected)


def test_a_dead_letter_that_ends_the_query_reads_as_in_micro_batches(tmp_path: Path) -> None:
    letter = pb.DeadLetter(code="C501", error="no", traceback="line 3\n", path="0/steps/0", step="split")
    packed = base64.b64encode(letter.SerializeToString()).decode()
    for policy in (ErrorPolicy(fails=True), ErrorPolicy(parts={"0/steps/0": True})):
        error = query_error(causes_of(report_of({"letter": packed})), "", tmp_path / "spark.log", policy)
        with pytest.raises(RunError) as raised:
            stop_at_dead_letter([letter], policy)
        assert str(error) == str(raised.value)
        assert error.diagnostics[0].traceback == "line 3\n"


def test_other_errors_of_spark_are_translated_as_in_micro_batches(tmp_path: Path) -> None:
    error = query_error(causes_of("java.lang.IllegalStateException: no"), "", tmp_path / "spark.log", ErrorPolicy())
    assert error.diagnostics[0].code == "R611"


def test_each_failure_of_the_operators_has_what_its_text_names() -> None:
    catalogue = {each["code"]: each for each in json.loads(ERRORS.read_bytes())["errors"]}
    found = [match.groups() for path in JAVA.rglob("*.java") for match in FAILURE.finditer(path.read_text())]
    assert len(found) > 10
    for code, values in found:
        names = set(re.findall(r"\{(\w+)\}", catalogue[code]["message"] + catalogue[code].get("fix", "")))
        assert [name for name in names if f'"{name}"' not in values] == [], code
