package org.wallaroo.spark.worker;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.query.OperatorFailure;
import wallaroo.worker.v1.WorkerOuterClass.Node;
import wallaroo.worker.v1.WorkerOuterClass.NodeKind;
import wallaroo.worker.v1.WorkerOuterClass.Stage;
import wallaroo.worker.v1.WorkerOuterClass.StepCount;
import wallaroo.worker.v1.WorkerOuterClass.Visited;

class AuditTest {
    private static final int SINK_PORT = 2;
    static final Stage SPLIT = FakeWorker.stage("s0")
            .addNodes(node("0/sources/0", NodeKind.NODE_KIND_SOURCE, 0))
            .addNodes(node("0/steps/0", NodeKind.NODE_KIND_COMPUTATION_MULTI, 0, "0/sources/0"))
            .addNodes(node("0/steps/1", NodeKind.NODE_KIND_KEY, 1, "0/steps/0"))
            .build();

    private static Node node(String path, NodeKind kind, int port, String... inputs) {
        return Node.newBuilder().setPath(path).setKind(kind).setPort(port).addAllInputs(List.of(inputs)).build();
    }

    static OperatorFailure refusedBy(Runnable check) {
        OperatorFailure failure = assertThrows(OperatorFailure.class, check::run);
        assertTrue(failure.getMessage().startsWith("W4"), failure.getMessage());
        return failure;
    }

    @ParameterizedTest
    @CsvSource({"2, 2, ''", "3, 2, 'messages_out: 2; 3 came to the output 0/steps/1'",
        "1, 1, 'messages_in: 2; its inputs gave 1 to 0/sinks/0'"})
    void whatIsEmittedToAnOutputGoesOnFromIt(int came, int went, String text) {
        Stage stage = FakeWorker.stage("s0")
                .addNodes(node("0/sources/0", NodeKind.NODE_KIND_SOURCE, 0))
                .addNodes(node("0/steps/0", NodeKind.NODE_KIND_COMPUTATION, 0, "0/sources/0"))
                .addNodes(node("0/steps/1", NodeKind.NODE_KIND_OUTPUT, 0, "0/steps/0"))
                .addNodes(node("0/sinks/0", NodeKind.NODE_KIND_SINK, 1, "0/steps/1")).build();
        List<StepCount> counts = List.of(count("0/sources/0", 3, 3, 0), count("0/steps/0", 3, 1, 0),
                count("0/steps/1", came, went, 0), count("0/sinks/0", 2, 2, 0));
        Runnable call = () -> new Audit(stage, "main").call(Map.of(0, 3L), Map.of(1, 2L), counts, List.of());
        if (text.isEmpty()) {
            call.run();
        } else {
            String said = refusedBy(call).getMessage();
            assertTrue(said.contains("field " + text), said);
        }
    }

    private static StepCount count(String path, long in, long out, long dead) {
        return StepCount.newBuilder().setPath(path).setMessagesIn(in).setMessagesOut(out).setDeadLetters(dead).build();
    }

    /** A call that runs a drawn chain of steps, and the counts that the worker reports of it. */
    private static final class Run {
        private final Stage.Builder stage = FakeWorker.stage("s0");
        private final List<StepCount> counts = new ArrayList<>();
        private final long came;
        private long dead;
        private long last;

        private Run(Random random) {
            came = random.nextInt(100);
            last = came;
            add(random, "0/sources/0", NodeKind.NODE_KIND_SOURCE, 0);
            String before = "0/sources/0";
            for (int i = random.nextInt(4); i > 0; i--) {
                String path = "0/steps/" + i;
                boolean isMulti = random.nextBoolean();
                add(random, path, isMulti ? NodeKind.NODE_KIND_COMPUTATION_MULTI : NodeKind.NODE_KIND_COMPUTATION, 0, before);
                before = path;
            }
            add(random, "0/sinks/0", NodeKind.NODE_KIND_SINK, SINK_PORT, before);
        }

        private void add(Random random, String path, NodeKind kind, int port, String... inputs) {
            long fails = random.nextInt((int) last + 1);
            boolean isMulti = kind == NodeKind.NODE_KIND_COMPUTATION_MULTI;
            long out = isMulti ? random.nextInt(300) : random.nextInt((int) (last - fails) + 1);
            stage.addNodes(node(path, kind, port, inputs));
            counts.add(count(path, last, out, fails));
            dead += fails;
            last = out;
        }

        private void check(List<StepCount> told) {
            Map<Integer, Long> left = Map.of(SINK_PORT, last, Frames.DEAD_LETTER_PORT, dead);
            new Audit(stage.build(), "main").call(Map.of(0, came, 65534, 1L), left, told, List.of());
        }
    }

    @Test
    void aRunAddsUpAndNoChangedNumberDoes() {
        Random random = new Random(7);
        for (int round = 0; round < 300; round++) {
            Run run = new Run(random);
            run.check(run.counts);
            int at = random.nextInt(run.counts.size());
            StepCount was = run.counts.get(at);
            long[] numbers = {was.getMessagesIn(), was.getMessagesOut(), was.getDeadLetters()};
            int which = random.nextInt(numbers.length);
            numbers[which] += numbers[which] > 0 && random.nextBoolean() ? -1 : 1;
            List<StepCount> changed = new ArrayList<>(run.counts);
            changed.set(at, count(was.getPath(), numbers[0], numbers[1], numbers[2]));
            refusedBy(() -> run.check(changed));
        }
    }

    @Test
    void aStepCountsWhatItHasACounterForAndNoMoreThanCame() {
        Random random = new Random(11);
        for (int round = 0; round < 200; round++) {
            boolean isWindow = random.nextBoolean();
            NodeKind kind = isWindow ? NodeKind.NODE_KIND_WINDOW : NodeKind.NODE_KIND_STATE_COMPUTATION_MULTI;
            long came = random.nextInt(6);
            long late = random.nextInt(8) - 1; // -1: 2^64 - 1
            Node.Builder node = node("0/steps/0", kind, 1).toBuilder();
            Audit audit = new Audit(
                    FakeWorker.stage("s1").addNodes(isWindow ? node.addCounters("dropped_late") : node).build(), "main");
            List<StepCount> counts =
                    List.of(count("0/steps/0", came, 0, 0).toBuilder().putMore("dropped_late", late).build());
            Runnable call = () -> audit.call(Map.of(1, came), Map.of(), counts, List.of());
            if (late >= 0 && late <= (isWindow ? came : 0)) {
                call.run();
            } else {
                assertTrue(refusedBy(call).getMessage().contains("dropped_late"));
            }
        }
    }

    @Test
    void whatTimersEmitAndTtlsEndHasNoBoundByWhatCame() {
        for (Node timed : List.of(Node.newBuilder().setTtlMs(5).build(), Node.newBuilder().addTimers("close").build())) {
            Node node = node("0/steps/0", NodeKind.NODE_KIND_STATE_COMPUTATION, 1).toBuilder().mergeFrom(timed)
                    .addCounters("expired").build();
            Audit audit = new Audit(FakeWorker.stage("s1").addNodes(node).build(), "main");
            StepCount count = count("0/steps/0", 1, 4, 0).toBuilder().putMore("expired", 3).build();
            audit.call(Map.of(1, 1L), Map.of(), List.of(count), List.of());
            StepCount other = count.toBuilder().putMore("expired", -1).build();
            refusedBy(() -> audit.call(Map.of(1, 1L), Map.of(), List.of(other), List.of()));
            StepCount stray = count.toBuilder().putMore("stray", 1).build();
            refusedBy(() -> audit.call(Map.of(1, 1L), Map.of(), List.of(stray), List.of()));
        }
    }

    @Test
    void anExitSendsWhatCameToItLessItsDeadLetters() {
        Audit audit = new Audit(SPLIT, "main");
        List<StepCount> counts =
                List.of(count("0/sources/0", 2, 2, 0), count("0/steps/0", 2, 5, 0), count("0/steps/1", 0, 0, 1));
        audit.call(Map.of(0, 2L), Map.of(1, 4L, Frames.DEAD_LETTER_PORT, 1L), counts, List.of());
        refusedBy(() -> audit.call(Map.of(0, 2L), Map.of(1, 3L, Frames.DEAD_LETTER_PORT, 1L), counts, List.of()));
        refusedBy(() -> audit.call(Map.of(0, 2L), Map.of(1, 6L, Frames.DEAD_LETTER_PORT, 1L), counts, List.of()));
    }

    @ParameterizedTest
    @CsvSource({"SOURCE", "STATE_COMPUTATION", "COMPUTATION", "KEY_BY", "OUTPUT"})
    void whatASendCannotWriteCameOutOfItsPart(String kind) {
        String path = "0/steps/0";
        boolean isEntry = kind.equals("SOURCE") || kind.startsWith("STATE");
        Stage.Builder stage = FakeWorker.stage("s0");
        if (!isEntry) {
            stage.addNodes(node("0/sources/0", NodeKind.NODE_KIND_SOURCE, 0));
        }
        NodeKind nodeKind = NodeKind.valueOf("NODE_KIND_" + kind);
        stage.addNodes(isEntry ? node(path, nodeKind, 0) : node(path, nodeKind, 0, "0/sources/0"));
        stage.addNodes(node(path, NodeKind.NODE_KIND_SEND, 1, path));
        Audit audit = new Audit(stage.build(), "main");
        Random random = new Random(11);
        for (int round = 0; round < 200; round++) {
            long came = random.nextInt(20);
            long dead = kind.equals("OUTPUT") ? 0 : random.nextInt((int) came + 1);
            long out = came - dead;
            long sent = random.nextInt((int) out + 1);
            long letters = came - sent;
            StepCount source = count("0/sources/0", came, kind.equals("OUTPUT") ? 0 : came, 0);
            StepCount send = count(path, 0, 0, out - sent);
            Map<Integer, Long> left = Map.of(1, sent, Frames.DEAD_LETTER_PORT, letters);
            audit.call(Map.of(0, came), left, counts(isEntry, source, count(path, came, out, dead), send), List.of());
            Map<Integer, Long> more = Map.of(1, sent, Frames.DEAD_LETTER_PORT, letters + 1);
            StepCount wrong = count(path, came, out, dead + 1);
            refusedBy(() -> audit.call(Map.of(0, came), more, counts(isEntry, source, wrong, send), List.of()));
            if (sent > 0 && dead == 0) { // else a dead letter of the path could be that of the SEND
                Map<Integer, Long> lost = Map.of(1, sent - 1, Frames.DEAD_LETTER_PORT, letters);
                StepCount right = count(path, came, out, dead);
                refusedBy(() -> audit.call(Map.of(0, came), lost, counts(isEntry, source, right, send), List.of()));
            }
        }
    }

    private static List<StepCount> counts(boolean isEntry, StepCount source, StepCount part, StepCount send) {
        return isEntry ? List.of(part, send) : List.of(source, part, send);
    }

    @Test
    void eachKeyOfAVisitMayGiveAsMuchAsAMessage() {
        Node.Builder number = node("0/steps/0", NodeKind.NODE_KIND_STATE_COMPUTATION, 1).toBuilder().addVisits("add");
        Stage stage = FakeWorker.stage("s1").addNodes(number)
                .addNodes(node("0/sinks/0", NodeKind.NODE_KIND_SINK, SINK_PORT, "0/steps/0")).build();
        Audit audit = new Audit(stage, "main");
        Map<Integer, Long> came = Map.of(1, 2L, Frames.VISIT_PORT, 1L);
        List<StepCount> counts = List.of(count("0/steps/0", 2, 5, 0), count("0/sinks/0", 5, 5, 0));
        audit.call(came, Map.of(SINK_PORT, 5L), counts, List.of(visited("0/steps/0", 1, 0), visited("0/steps/0", 2, 2)));
        for (List<Visited> visits : List.of(
                List.of(visited("0/steps/0", 2, 0)),
                List.of(visited("0/steps/0", 3, 4)),
                List.of(visited("0/steps/0", -1, -2)),
                List.of(visited("0/steps/0", 3, 0), visited("0/sinks/0", 1, 0)))) {
            refusedBy(() -> audit.call(came, Map.of(SINK_PORT, 5L), counts, visits));
        }
    }

    private static Visited visited(String path, long keys, long failed) {
        return Visited.newBuilder().setId(1).setPath(path).setKeys(keys).setFailed(failed).build();
    }

    @Test
    void whatIsAboveTheRangeOfNumbersIsRefused() {
        Audit audit = new Audit(SPLIT, "main");
        refusedBy(() -> audit.call(Map.of(), Map.of(), List.of(count("0/steps/0", 0, -1, 0)), List.of()));
    }
}
