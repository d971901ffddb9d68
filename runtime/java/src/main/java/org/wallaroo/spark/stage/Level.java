package org.wallaroo.spark.stage;

import java.util.ArrayList;
import java.util.List;
import org.wallaroo.spark.account.CallCounts;
import org.wallaroo.spark.bucket.BucketStore;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.Settings;

/** The stages of a level, which run one after the other: what one sends, a later one takes. */
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

    /** Runs what enters the level; returns what leaves it, and what passes it. */
    public List<JournalRow.Item> run(List<JournalRow.Item> items) {
        List<JournalRow.Item> held = items;
        for (int number = 0; number < stages.size(); number++) {
            held = after(number, held);
        }
        return held;
    }

    /** Runs what the level before has given at its flush, then ends all calls; returns what leaves the level. */
    public List<JournalRow.Item> flush(List<JournalRow.Item> items) {
        List<JournalRow.Item> held = items;
        for (int number = 0; number < stages.size(); number++) {
            held = after(number, held);
            held.addAll(stages.get(number).flush());
        }
        return held;
    }

    /** Returns what is there after a stage: what it gives, what it does not take, and what a later one takes, too. */
    private List<JournalRow.Item> after(int number, List<JournalRow.Item> items) {
        LevelStage stage = stages.get(number);
        List<LevelStage> later = stages.subList(number + 1, stages.size());
        List<JournalRow.Item> mine = new ArrayList<>();
        List<JournalRow.Item> others = new ArrayList<>();
        for (JournalRow.Item item : items) {
            boolean isTaken = stage.takes(item.port());
            if (isTaken) {
                mine.add(item);
            }
            boolean isControl = Frames.isControl(item.port()); // these concern each stage that takes them
            if (!isTaken || isControl || later.stream().anyMatch(each -> each.takes(item.port()))) {
                others.add(item);
            }
        }
        if (!mine.isEmpty()) {
            others.addAll(stage.run(mine));
        }
        return others;
    }

    /** Does before the first message what would hold it up. */
    public void warm() {
        stages.forEach(LevelStage::warm);
    }

    /** Ends the streams. */
    @Override
    public void close() {
        stages.forEach(LevelStage::close);
    }
}
