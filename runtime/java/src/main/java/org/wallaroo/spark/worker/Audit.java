package org.wallaroo.spark.worker;

import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.query.OperatorFailure;
import wallaroo.worker.v1.WorkerOuterClass.Node;
import wallaroo.worker.v1.WorkerOuterClass.NodeKind;
import wallaroo.worker.v1.WorkerOuterClass.Output;
import wallaroo.worker.v1.WorkerOuterClass.Stage;
import wallaroo.worker.v1.WorkerOuterClass.StepCount;
import wallaroo.worker.v1.WorkerOuterClass.Visited;

/** Checks the replies of a worker: the form of each output and state change, and the numbers of messages of a call. */
public final class Audit {
    static final Set<NodeKind> EXITS =
            EnumSet.of(NodeKind.NODE_KIND_KEY, NodeKind.NODE_KIND_SEND, NodeKind.NODE_KIND_SINK);
    static final Set<NodeKind> STATES = EnumSet.of(NodeKind.NODE_KIND_STATE_COMPUTATION,
            NodeKind.NODE_KIND_STATE_COMPUTATION_MULTI, NodeKind.NODE_KIND_WINDOW);
    // A message that enters a node of these kinds leaves the node at most once: to the next node, or as a dead letter.
    private static final Set<NodeKind> SINGLE = EnumSet.of(NodeKind.NODE_KIND_SOURCE, NodeKind.NODE_KIND_COMPUTATION,
            NodeKind.NODE_KIND_STATE_COMPUTATION, NodeKind.NODE_KIND_KEY_BY, NodeKind.NODE_KIND_COLLECT,
            NodeKind.NODE_KIND_SINK);

    private final Stage stage;
    private final FrameAudit frames;
    private final Map<String, Integer> sends = new HashMap<>(); // ports of SEND nodes by path

    Audit(Stage stage, String worker) {
        this.stage = stage;
        frames = new FrameAudit(stage, worker);
        for (Node node : stage.getNodesList()) {
            if (node.getKind() == NodeKind.NODE_KIND_SEND) {
                sends.put(node.getPath(), node.getPort());
            }
        }
    }

    /** Numbers of messages that entered a node, left it, and became dead letters in it. */
    private record Row(long in, long out, long dead) {
        private static final Row NONE = new Row(0, 0, 0);

        private Row plus(StepCount count) {
            return new Row(in + count.getMessagesIn(), out + count.getMessagesOut(), dead + count.getDeadLetters());
        }
    }

    /** The least and the largest number of messages that a node can have passed on. */
    private record Range(long least, long most) {}

    /**
     * Checks one output.
     *
     * @throws OperatorFailure W410 if the stage has no such output, or the frame is damaged
     */
    public void output(Output output) {
        frames.output(output);
    }

    /**
     * Checks one entry for the log of a bucket.
     *
     * @throws OperatorFailure W410 if the stage has no such state, or the entry is damaged
     */
    public void change(byte[] entry) {
        frames.change(entry);
    }

    /**
     * Checks that each message of a call was passed on, became a dead letter, or was dropped by a step.
     *
     * @param came number of messages in the frames of the call, by port
     * @param left number of messages in the outputs of the call, by port
     * @param counts numbers that the worker has counted
     * @param visits results of visits; for each visited key, a step may emit as many messages as for one message
     * @throws OperatorFailure W410 if the numbers do not add up
     */
    public void call(Map<Integer, Long> came, Map<Integer, Long> left, List<StepCount> counts, List<Visited> visits) {
        Map<String, Long> visited = visited(visits);
        Map<String, Row> told = told(counts);
        long dead = told.values().stream().mapToLong(Row::dead).sum();
        if (dead != sent(left, Frames.DEAD_LETTER_PORT)) {
            throw frames.refused("dead_letters", dead, "frames hold " + sent(left, Frames.DEAD_LETTER_PORT));
        }
        Map<String, Range> outs = new HashMap<>();
        for (Node node : stage.getNodesList()) {
            Row row = told.getOrDefault(node.getPath(), Row.NONE);
            Row own = own(node, row, left);
            boolean isEntry = STATES.contains(node.getKind()) || node.getKind() == NodeKind.NODE_KIND_SOURCE;
            if (node.getKind() == NodeKind.NODE_KIND_RECEIVE) {
                long most = sent(came, node.getPort());
                outs.put(node.getPath(), new Range(Math.max(0, most - row.dead()), most));
            } else if (isEntry) {
                enter(node, own, sent(came, node.getPort()), visited.getOrDefault(node.getPath(), 0L));
            } else {
                flow(node, own, inputs(node, outs), sent(left, node.getPort()));
            }
            if (!EXITS.contains(node.getKind())) {
                outs.putIfAbsent(node.getPath(), new Range(row.out(), row.out()));
            }
        }
    }

    /** Returns the numbers of a node alone, without dead letters of the SEND node that has the same path. */
    private Row own(Node node, Row row, Map<Integer, Long> left) {
        Integer port = EXITS.contains(node.getKind()) ? null : sends.get(node.getPath());
        return port == null ? row : new Row(row.in(), row.out(), row.dead() - row.out() + sent(left, port));
    }

    private Map<String, Row> told(List<StepCount> counts) {
        List<String> paths = stage.getNodesList().stream().map(Node::getPath).toList();
        Map<String, Row> told = new HashMap<>();
        for (StepCount count : counts) {
            if (!paths.contains(count.getPath())) {
                throw frames.refused("counts", count.getPath(), "expected one of " + paths);
            }
            if (count.getMessagesIn() < 0 || count.getMessagesOut() < 0 || count.getDeadLetters() < 0) {
                throw frames.refused("counts", count.getPath(), "its numbers are above 2^63");
            }
            more(count);
            told.put(count.getPath(), told.getOrDefault(count.getPath(), Row.NONE).plus(count));
        }
        return told;
    }

    /** Checks a step's counters: each is declared, and without timers or ttl it counts a message at most once. */
    private void more(StepCount count) {
        count.getMoreMap().forEach((name, number) -> {
            long most = stage.getNodesList().stream().filter(node ->
                    node.getPath().equals(count.getPath()) && node.getCountersList().contains(name))
                    .mapToLong(node -> isTimed(node) ? Long.MAX_VALUE : count.getMessagesIn()).max().orElse(0);
            if (Long.compareUnsigned(number, most) > 0) {
                throw frames.refused(name, Long.toUnsignedString(number), count.getPath() + " had " + count.getMessagesIn() + " messages");
            }
        });
    }

    /** Returns the number of visited keys, by path. */
    private Map<String, Long> visited(List<Visited> visits) {
        Map<String, Long> keys = new HashMap<>();
        for (Visited visit : visits) {
            String path = visit.getPath();
            if (stage.getNodesList().stream().noneMatch(
                    node -> node.getPath().equals(path) && node.getVisitsCount() > 0 && STATES.contains(node.getKind()))) {
                throw frames.refused("visits", path, "expected a step of the stage that takes visits");
            }
            if (visit.getKeys() < 0 || visit.getFailed() < 0 || visit.getFailed() > visit.getKeys()) {
                throw frames.refused("visits", visit.getFailed(), visit.getKeys() + " keys of " + path + " were visited");
            }
            keys.merge(path, visit.getKeys(), Long::sum);
        }
        return keys;
    }

    private void enter(Node node, Row row, long sent, long visited) {
        if (row.in() != sent) {
            throw frames.refused("messages_in", row.in(), node.getPath() + " was sent " + sent);
        }
        single(node, row, visited);
    }

    /** Checks that a node got the messages that its inputs emitted, and that an exit emitted the messages it got. */
    private void flow(Node node, Row row, Range inputs, long sent) {
        String path = node.getPath();
        switch (node.getKind()) {
            case NODE_KIND_KEY, NODE_KIND_SEND -> {
                if (sent < inputs.least() - row.dead() || sent > inputs.most()) {
                    throw frames.refused("messages", sent,
                            inputs.most() + " came to the exit " + path + ", " + row.dead() + " are dead letters");
                }
            }
            case NODE_KIND_OUTPUT -> {
                if (row.out() != row.in() || row.dead() != 0) {
                    throw frames.refused("messages_out", row.out(), row.in() + " came to the output " + path);
                }
            }
            default -> {
                if (row.in() < inputs.least() || row.in() > inputs.most()) {
                    throw frames.refused("messages_in", row.in(), "its inputs gave " + inputs.most() + " to " + path);
                }
                if (node.getKind() == NodeKind.NODE_KIND_SINK && row.out() != sent) {
                    throw frames.refused("messages_out", row.out(), "the frames of " + path + " hold " + sent);
                }
                single(node, row, 0);
            }
        }
    }

    private static boolean isTimed(Node node) {
        return node.getTtlMs() != 0 || node.getTimersCount() > 0;
    }

    private void single(Node node, Row row, long visited) {
        if (SINGLE.contains(node.getKind()) && !isTimed(node) && row.out() + row.dead() > row.in() + visited) {
            throw frames.refused("messages_out", row.out(),
                    row.in() + " came to " + node.getPath() + ", " + row.dead() + " of them are dead letters");
        }
    }

    private static Range inputs(Node node, Map<String, Range> outs) {
        List<Range> inputs = node.getInputsList().stream().map(outs::get).toList();
        return new Range(inputs.stream().mapToLong(Range::least).sum(), inputs.stream().mapToLong(Range::most).sum());
    }

    private static long sent(Map<Integer, Long> messages, int port) {
        return messages.getOrDefault(port, 0L);
    }
}
