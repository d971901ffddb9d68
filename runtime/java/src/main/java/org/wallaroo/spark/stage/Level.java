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
import org.wallaroo.spark.query.Settings;

/** The stages of a level, which run one after the other: a later one takes the output of an earlier one. */
public final class Level implements AutoCloseable {
    private final List<LevelStage> stages;

    Level(List<LevelStage> stages) {
        this.stages = stages;
    }

    /**
     * Returns a level that begins with state.
     *
     * @param stages of it, in the order in which they run
     * @param scope which buckets run here
     */
    public static Level of(
            List<Settings> stages, Attempt attempt, BucketStore store, CallCounts account, CallScope scope) {
        List<LevelStage> made = new ArrayList<>();
        for (Settings stage : stages) {
            made.add(stage.hasState()
                    ? new StateStage(stage, attempt, store, account, scope)
                    : new ReceivingStage(stage, attempt, account));
        }
        return new Level(made);
    }

    /** Runs rows that enter the level; returns those that leave it or pass it. */
    public List<JournalRow.Item> run(List<JournalRow.Item> items) {
        return all(new Leaving(items, false));
    }

    /** Runs the rows that the level before has given at its flush, then ends all calls; returns the level's output. */
    public List<JournalRow.Item> flush(List<JournalRow.Item> items) {
        return all(new Leaving(items, true));
    }

    /** Does the same in steps: the next one begins when it is asked for; returns the output of each. */
    public Iterator<List<JournalRow.Item>> leaving(List<JournalRow.Item> items) {
        return new Leaving(items, true);
    }

    private static List<JournalRow.Item> all(Iterator<List<JournalRow.Item>> steps) {
        List<JournalRow.Item> found = new ArrayList<>();
        steps.forEachRemaining(found::addAll);
        return found;
    }

    /** The output of the level, step by step; rows that a later stage takes are held until that runs. */
    private final class Leaving implements Iterator<List<JournalRow.Item>> {
        private final boolean flushes;
        private Iterator<List<JournalRow.Item>> steps; // what enters the level, then those of the stage that runs
        private List<JournalRow.Item> held = new ArrayList<>();
        private int number = -1; // of the stage that runs
        private boolean isFlushed = true; // that stage

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
                if (!isHeld || Frames.isControl(item.port())) { // these concern each stage that takes them
                    leaving.add(item);
                }
            }
            return leaving;
        }

        private boolean isHeld(JournalRow.Item item) {
            return stages.subList(number + 1, stages.size()).stream().anyMatch(stage -> stage.takes(item.port()));
        }
    }

    /** Does before the first message the work that would hold it up. */
    public void warm() {
        stages.forEach(LevelStage::warm);
    }

    /** Ends the streams. */
    @Override
    public void close() {
        Closing.all(stages, LevelStage::close);
    }
}
