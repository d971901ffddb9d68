package org.wallaroo.spark.stage;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.wallaroo.spark.account.CallCounts;
import org.wallaroo.spark.bucket.BucketStore;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.StageSettings;
import org.wallaroo.spark.worker.WorkerChannel;

/** A stage with state. The calls of its buckets run at the same time. */
final class StateStage implements LevelStage {
    private final BucketCalls calls;
    private final Set<Integer> entries;
    private final int buckets;
    private final CallScope scope;

    StateStage(StageSettings stage, Attempt attempt, BucketStore store, CallCounts account, CallScope scope) {
        var opening = attempt.opening(stage.opening());
        this.scope = scope;
        buckets = opening.getStage().getBucketCount();
        entries = Set.copyOf(stage.entries());
        calls = new BucketCalls(new WorkerChannel(stage), opening, store, stage, account, scope.endsAtOnce());
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
            for (int bucket : scope.bucketsOf(buckets)) {
                mine.add(new JournalRow.Item(item.port(), bucket, item.origin(), item.frame()));
            }
        }
        return calls.run(mine);
    }

    @Override
    public List<JournalRow.Item> flush() {
        List<JournalRow.Item> released = calls.flush();
        if (!calls.isIdle()) {
            throw OperatorFailure.of("I901", "reason", "a call is open at the end of a batch");
        }
        return released;
    }

    @Override
    public void warm() {
        calls.open(scope.bucketsOf(buckets));
    }

    @Override
    public void close() {
        calls.close();
    }
}
