package org.wallaroo.spark.stage;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.wallaroo.spark.account.CallCounts;
import org.wallaroo.spark.bucket.BucketStore;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.StageSettings;

/**
 * A level: the stages between two shuffles. They run one after the other, and a later one takes output of earlier ones.
 */
public final class Level implements AutoCloseable {
    private final List<LevelStage> stages;

    Level(List<LevelStage> stages) {
        this.stages = stages;
    }

    /**
     * Returns a level that begins with state.
     *
     * @param stages of the level, in the order in which they run
     * @param scope buckets that run here
     */
    public static Level of(
            List<StageSettings> stages, Attempt attempt, BucketStore store, CallCounts account, CallScope scope) {
        List<LevelStage> made = new ArrayList<>();
        for (StageSettings stage : stages) {
            made.add(stage.hasState()
                    ? new StateStage(stage, attempt, store, account, scope)
                    : new ReceivingStage(stage, attempt, account));
        }
        return new Level(made);
    }

    /** Runs frames that enter the level. Returns the output, and the frames that no stage of the level takes. */
    public List<JournalRow.Item> run(List<JournalRow.Item> items) {
        return all(new Leaving(items, false));
    }

    /** Runs frames as {@link #run} does, and ends all calls, so that their changes can be stored. */
    public List<JournalRow.Item> flush(List<JournalRow.Item> items) {
        return all(new Leaving(items, true));
    }

    /** Does the same as {@link #flush} in steps. Each {@code next} runs a step, and returns its output. */
    public Iterator<List<JournalRow.Item>> flushSteps(List<JournalRow.Item> items) {
        return new Leaving(items, true);
    }

    private static List<JournalRow.Item> all(Iterator<List<JournalRow.Item>> steps) {
        List<JournalRow.Item> found = new ArrayList<>();
        steps.forEachRemaining(found::addAll);
        return found;
    }

    /** Yields the output of the level, step by step. Frames for a later stage are held until that stage runs. */
    private final class Leaving implements Iterator<List<JournalRow.Item>> {
        private final boolean flushes;
        private Iterator<List<JournalRow.Item>> steps; // frames that enter the level, then outputs of the running stage
        private List<JournalRow.Item> held = new ArrayList<>();
        private int number = -1; // number of the running stage
        private boolean isFlushed = true; // whether the running stage was flushed

        private Leaving(List<JournalRow.Item> items, boolean flushes) {
            this.flushes = flushes;
            steps = List.of(items).iterator();
        }

        @Override
        public boolean hasNext() {
            return steps.hasNext() || !isFlushed || number + 1 < stages.size();
        }

        @Override
        public List<JournalRow.Item> next() {
            if (steps.hasNext()) {
                return leavingOf(steps.next());
            }
            if (!isFlushed) {
                isFlushed = true;
                return leavingOf(stages.get(number).flush());
            }
            number++;
            LevelStage stage = stages.get(number);
            List<JournalRow.Item> mine = held.stream().filter(item -> stage.takes(item.port())).toList();
            held = new ArrayList<>(held.stream().filter(this::isHeld).toList());
            steps = mine.isEmpty() ? Collections.emptyIterator() : stage.run(mine);
            isFlushed = !flushes;
            return List.of();
        }

        private List<JournalRow.Item> leavingOf(List<JournalRow.Item> given) {
            List<JournalRow.Item> leaving = new ArrayList<>();
            for (JournalRow.Item item : given) {
                boolean isHeld = isHeld(item);
                if (isHeld) {
                    held.add(item);
                }
                if (!isHeld || Frames.isControl(item.port())) { // ticks and visits go to each stage that takes them
                    leaving.add(item);
                }
            }
            return leaving;
        }

        private boolean isHeld(JournalRow.Item item) {
            return stages.subList(number + 1, stages.size()).stream().anyMatch(stage -> stage.takes(item.port()));
        }
    }

    /** Opens streams and reads versions in advance, so that the first message does not wait for them. */
    public void warm() {
        stages.forEach(LevelStage::warm);
    }

    /** Ends the streams. */
    @Override
    public void close() {
        Closing.all(stages, LevelStage::close);
    }
}
