package org.wallaroo.spark.stage;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.TreeMap;
import org.wallaroo.spark.account.CallCounts;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.StageSettings;
import org.wallaroo.spark.worker.WorkerChannel;

/**
 * A stage without state that processes messages from stages of other workers in its level.
 *
 * <p>The messages of each port, bucket and sending stage are sent separately, so that their results are in the order of
 * sequences. The first stage may send messages to this stage, and so may each stage whose block of origins precedes
 * this stage's block.
 */
final class ReceivingStage implements LevelStage {
    private static final int WINDOW = 16;

    private final DataCalls calls;
    private final List<Integer> entries;
    private final int buckets;
    private final int block;

    ReceivingStage(StageSettings stage, Attempt attempt, CallCounts account) {
        var opening = attempt.opening(stage.opening());
        buckets = opening.getStage().getBucketCount();
        block = stage.block();
        entries = stage.entries();
        calls = new DataCalls(new WorkerChannel(stage), opening, stage.deadlineMs(), account);
    }

    @Override
    public boolean takes(int port) {
        return entries.contains(port);
    }

    @Override
    public Iterator<List<JournalRow.Item>> run(List<JournalRow.Item> items) {
        TreeMap<Integer, List<byte[]>> data = new TreeMap<>(); // frames by origin of the results
        for (JournalRow.Item item : items) {
            int origin = origin(block, entries.indexOf(item.port()), buckets, item.origin());
            data.computeIfAbsent(origin, number -> new ArrayList<>()).add(item.frame());
        }
        Deque<Part> parts = new ArrayDeque<>();
        data.forEach((origin, frames) -> RequestParts.of(frames).forEach(part -> parts.add(new Part(origin, part))));
        return new Answers(parts);
    }

    /**
     * The content of one request to the worker.
     *
     * @param origin of the results
     */
    private record Part(int origin, List<byte[]> frames) {}

    /** Yields the outputs of one request after the other, while some later requests are in flight. */
    private final class Answers implements Iterator<List<JournalRow.Item>> {
        private final Deque<Part> waiting;
        private final Deque<Integer> underWay = new ArrayDeque<>(); // origins of results

        private Answers(Deque<Part> waiting) {
            this.waiting = waiting;
        }

        @Override
        public boolean hasNext() {
            return !waiting.isEmpty() || !underWay.isEmpty();
        }

        @Override
        public List<JournalRow.Item> next() {
            while (underWay.size() < WINDOW && !waiting.isEmpty()) {
                Part part = waiting.removeFirst();
                calls.send(RequestParts.joined(part.frames()));
                underWay.add(part.origin());
            }
            int origin = underWay.removeFirst();
            return calls.receive().stream()
                    .map(output -> new JournalRow.Item(
                            output.getPort(), output.getBucket(), origin, output.getFrame().toByteArray()))
                    .toList();
        }
    }

    /**
     * Returns the origin of results: a number for each port of this stage and each origin of its messages. Within one
     * origin, results are in the order of sequences.
     *
     * @param block first block of this stage; the driver reserves a block for each entry and sender
     * @param entry number of the entry, counted from 0
     * @param buckets number of buckets of each stage
     * @param from origin of the messages; -1 for the first stage
     */
    static int origin(int block, int entry, int buckets, int from) {
        int senders = block + 1;
        int sender = from < 0 ? 0 : from / buckets + 1;
        return (block + entry * senders + sender) * buckets + Math.max(from, 0) % buckets;
    }

    @Override
    public List<JournalRow.Item> flush() {
        return List.of();
    }

    @Override
    public void warm() {
        calls.open();
    }

    @Override
    public void close() {
        calls.close();
    }
}
