package org.wallaroo.spark.stage;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.wallaroo.spark.account.CallCounts;
import org.wallaroo.spark.bucket.BucketStore;
import org.wallaroo.spark.bucket.BucketVersion;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.worker.WorkerChannel;

/** A stage with state, whose buckets run at the same time. */
final class StateStage implements LevelStage {
    private final BucketCalls calls;
    private final BucketStore states;
    private final Set<Integer> entries;
    private final int buckets;
    private final int block;
    private final CallScope scope;

    StateStage(Settings stage, Attempt attempt, BucketStore store, CallCounts account, CallScope scope) {
        var opening = attempt.opening(stage.opening());
        this.scope = scope;
        buckets = opening.getStage().getBucketCount();
        block = stage.block();
        entries = Set.copyOf(stage.entries());
        states = new BlockStore(store, block * buckets);
        calls = new BucketCalls(WorkerChannel.of(stage), opening, states, stage, account, scope.endsAtOnce());
    }

    @Override
    public boolean takes(int port) {
        return entries.contains(port);
    }

    @Override
    public Iterator<List<JournalRow.Item>> run(List<JournalRow.Item> items) {
        List<JournalRow.Item> mine = new ArrayList<>();
        for (JournalRow.Item item : items) {
            if (!Frames.isControl(item.port())) {
                mine.add(item);
                continue;
            }
            for (int bucket : scope.of(buckets)) {
                mine.add(new JournalRow.Item(item.port(), bucket, item.origin(), item.frame()));
            }
        }
        Iterator<List<JournalRow.Item>> steps = calls.run(mine);
        return new Iterator<>() {
            @Override
            public boolean hasNext() {
                return steps.hasNext();
            }

            @Override
            public List<JournalRow.Item> next() {
                return placed(steps.next());
            }
        };
    }

    @Override
    public List<JournalRow.Item> flush() {
        List<JournalRow.Item> released = placed(calls.flush());
        if (!calls.isIdle()) {
            throw OperatorFailure.of("I901", "reason", "a call is open at the end of a batch");
        }
        return released;
    }

    private List<JournalRow.Item> placed(List<JournalRow.Item> items) {
        return items.stream()
                .map(item -> new JournalRow.Item(
                        item.port(), item.bucket(), block * buckets + item.origin(), item.frame()))
                .toList();
    }

    @Override
    public void warm() {
        calls.open(scope.of(buckets));
        for (int bucket : scope.of(buckets)) {
            states.version(bucket);
        }
    }

    @Override
    public void close() {
        calls.close();
    }

    /** The part of a task's store that belongs to one stage. */
    private record BlockStore(BucketStore whole, int first) implements BucketStore {
        @Override
        public BucketVersion version(int bucket) {
            return whole.version(first + bucket);
        }

        @Override
        public List<byte[]> log(int bucket, BucketVersion version) {
            return whole.log(first + bucket, version);
        }

        @Override
        public void store(int bucket, BucketVersion before, BucketVersion after, List<byte[]> changes) {
            whole.store(first + bucket, before, after, changes);
        }
    }
}
