package org.wallaroo.spark.microbatch;

import java.util.ArrayDeque;
import java.util.Collections;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.function.IntFunction;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.ChainedIterator;
import org.wallaroo.spark.query.StageSettings;
import org.wallaroo.spark.stage.CallScope;
import org.wallaroo.spark.state.FinalStates;

/**
 * Yields the rows of a level, and after them the states at the end of the batch. A PySpark job asks for these states
 * with {@code gives_states}.
 */
final class EndRows extends ChainedIterator<byte[]> {
    private final Iterator<byte[]> rows;
    private final Deque<Integer> buckets = new ArrayDeque<>(); // store's numbers of buckets whose states follow
    private final IntFunction<FinalStates> finalStates;
    private final LevelOutput output;
    private Iterator<byte[]> states = Collections.emptyIterator(); // frames

    /**
     * Makes the iterator.
     *
     * @param rows output of the level
     * @param stages of the level
     * @param scope buckets that this task runs
     * @param finalStates returns the states of a bucket, by the bucket's number in the store
     */
    EndRows(Iterator<byte[]> rows, List<StageSettings> stages, CallScope scope,
            IntFunction<FinalStates> finalStates, LevelOutput output) {
        this.rows = rows;
        this.finalStates = finalStates;
        this.output = output;
        for (StageSettings stage : stages) {
            int count = stage.opening().getStage().getBucketCount();
            if (stage.hasState()) {
                scope.bucketsOf(count).forEach(bucket -> buckets.add(stage.block() * count + bucket));
            }
        }
    }

    @Override
    protected Iterator<byte[]> following() {
        if (rows.hasNext()) {
            return rows;
        }
        while (!states.hasNext() && !buckets.isEmpty()) {
            states = finalStates.apply(buckets.remove());
        }
        if (!states.hasNext()) {
            return null;
        }
        byte[] frame = states.next();
        return output.take(List.of(new JournalRow.Item(Frames.port(frame, 0), -1, -1, frame))).iterator();
    }
}
