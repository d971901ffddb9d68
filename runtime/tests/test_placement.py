"""Where partitions are, and what a run says when they have moved."""

from wallaroo_runtime.spark.placement import Moves, by_executor, name_of

ONE = {"s1/0": "0 on a", "s1/1": "0 on a", "s1/2": "0 on a"}
TWO = {"s1/0": "0 on a", "s1/1": "1 on b", "s1/2": "1 on b"}


def test_state_that_has_moved_is_told_when_executors_come_or_go() -> None:
    moves = Moves()
    assert not list(moves.look({}))
    assert not list(moves.look(ONE)), "where state is first is no move"
    assert not list(moves.look(ONE))
    assert list(moves.look(TWO)) == ["state of s1/1, s1/2 has moved from executor 0 on a to executor 1 on b"]
    swapped = {"s1/0": "1 on b", "s1/1": "0 on a", "s1/2": "1 on b"}
    assert not list(moves.look(swapped)), "executors that stay may change with every micro-batch"
    assert list(moves.look(ONE)) == ["state of s1/1, s1/2 has moved from executor 1 on b to executor 0 on a"]


def test_another_executor_on_the_same_machine_is_another_one() -> None:
    moves = Moves()
    list(moves.look({"s1/10": "0 on a", "s1/9": "0 on a"}))
    said = list(moves.look({"s1/10": "3 on a", "s1/9": "3 on a"}))
    assert said == ["state of s1/9, s1/10 has moved from executor 0 on a to executor 3 on a"]


def test_executors_are_named_by_number_and_machine() -> None:
    command = "java -cp x org.apache.spark.executor.CoarseGrainedExecutorBackend --driver-url spark://d:1 "
    assert name_of((command + "--executor-id 7 --hostname node3 --cores 1").split()) == "7 on node3"
    assert name_of(["java", "org.apache.spark.deploy.SparkSubmit"]) == "driver"
    assert by_executor({"s2/0": "1 on b", "s1/10": "0 on a", "s1/9": "0 on a"}) == {
        "0 on a": ["s1/9", "s1/10"],
        "1 on b": ["s2/0"],
    }
