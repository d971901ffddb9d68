package org.wallaroo.spark.microbatch;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.TaskContext;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.Settings;

/**
 * Turns the outputs of a task into rows for the next level. At the last level it writes them into staged files, and
 * makes rows that name these files.
 *
 * <p>In an applied application, the last level yields the outputs as rows, one for each frame. A row with the task's
 * counts follows if the query is observed.
 */
final class LevelOutput {
    static final long LAST = Long.MAX_VALUE; // sequence of ticks after all records, if Spark reads all sources
    private static final int PLACE_BITS = 40; // number of bits of a row's number below the place
    private final Attempt attempt;
    private final ShuffleRow.Maker maker;
    private final TaskAccount account;
    private final List<Integer> targets; // by partition
    private final Set<Integer> later; // ports that later levels take
    private final Staging files; // null if nothing is staged
    private final boolean yieldsFrames; // whether this is the last level and nothing is staged
    private final Map<Integer, Long> numbers = new HashMap<>(); // rows so far, by origin
    private final boolean controlsPrecede;
    private final boolean isOfTable;
    private final boolean isApplied;
    private final boolean isObserved;

    /**
     * Makes the output of a task.
     *
     * @param isOfTable whether the rows precede all other rows of a micro-batch
     */
    LevelOutput(Settings settings, int level, Attempt attempt, TaskAccount account, boolean isOfTable) {
        this.controlsPrecede = settings.controlsPrecede();
        this.isOfTable = isOfTable;
        this.attempt = attempt;
        this.maker = new ShuffleRow.Maker(level, attempt.partition(), attempt.attempt());
        this.account = account;
        this.targets = settings.targets();
        this.later = settings.laterPorts().get(level);
        boolean isLast = level + 1 == settings.levels().size();
        this.isApplied = settings.applied() != null;
        this.yieldsFrames = isLast && isApplied;
        this.isObserved = isApplied && !settings.applied().counts().isEmpty();
        this.files = isLast && !yieldsFrames ? Staging.of(settings, attempt) : null;
    }

    /** Turns outputs of stages into rows. */
    List<byte[]> take(List<JournalRow.Item> items) {
        return take(items, 0);
    }

    /**
     * Turns outputs into rows. Under {@code apply}, rows with equal sequences are ordered by the place of {@code row}.
     */
    List<byte[]> take(JournalRow row) {
        return take(row.items(), isApplied ? row.place().offset() : 0);
    }

    private List<byte[]> take(List<JournalRow.Item> items, long place) {
        List<byte[]> rows = new ArrayList<>();
        for (JournalRow.Item item : items) {
            if (Frames.isControl(item.port())) {
                rows.addAll(toAll(item));
            } else if (files != null) {
                stage(item.port(), item.frame());
            } else if (yieldsFrames) {
                rows.add(item.frame());
            } else {
                rows.add(row(item, place).toBytes());
            }
        }
        return rows;
    }

    /** Passes on a row of an earlier level that this level does not run. Returns the rows for later levels. */
    List<byte[]> pass(ShuffleRow row) {
        if (yieldsFrames) { // rows go to the user's query, and no accounts are compared
            return row.kind() != ShuffleRow.Kind.ACCOUNT || isObserved ? List.of(row.payload()) : List.of();
        }
        if (files != null && row.kind() == ShuffleRow.Kind.ACCOUNT) {
            return List.of(row.payload());
        }
        if (files != null) {
            stage(row.port(), row.payload());
            return List.of();
        }
        return List.of(row.toBytes());
    }

    /** Finishes the output, e.g. staged files. Returns the task's last rows: descriptors of files, and its account. */
    Iterator<byte[]> finish() {
        if (yieldsFrames && !isObserved) {
            return Collections.emptyIterator();
        }
        List<byte[]> rows = new ArrayList<>();
        if (files != null) {
            files.finish().forEach(file -> rows.add(file.getBytes(StandardCharsets.UTF_8)));
        }
        byte[] json = account.json().getBytes(StandardCharsets.UTF_8);
        int target = targets.get(attempt.partition() % targets.size());
        rows.add(files != null || yieldsFrames ? json
                : new ShuffleRow(target, ShuffleRow.Kind.ACCOUNT, -1, -1, 0, maker, json).toBytes());
        return rows.iterator();
    }

    /**
     * Says whether this is the last level of an application under {@code apply}. It yields frames, and stages nothing.
     */
    boolean yieldsFrames() {
        return yieldsFrames;
    }

    /** Aborts the output if the task fails. Under {@code apply} nothing is staged, and nobody reads accounts. */
    void abortOnFailure() {
        if (!isApplied) {
            TaskContext.get().addTaskFailureListener((failed, error) -> {
                abort();
            });
        }
    }

    /** Drops the staged output of a task that has failed. */
    void abort() {
        account.abort();
        if (files != null) {
            files.abort();
        }
    }

    private void stage(int port, byte[] frame) {
        account.staged(port, Frames.count(frame, 0));
        files.write(port, frame);
    }

    private ShuffleRow row(JournalRow.Item item, long place) {
        int bucket = item.bucket() < 0 ? item.port() : item.bucket(); // outputs without a bucket are grouped by port
        ShuffleRow.Kind kind = item.bucket() < 0 ? ShuffleRow.Kind.DONE : ShuffleRow.Kind.DATA;
        long number = numbers.merge(item.origin(), 1L, Long::sum) + (isOfTable ? Long.MIN_VALUE : place << PLACE_BITS);
        int origin = isOfTable ? Integer.MIN_VALUE + 1 + item.origin() : item.origin(); // the first stage has -1
        ShuffleRow row = new ShuffleRow(targets.get(bucket % targets.size()), kind, item.bucket(), origin, number,
                maker, item.frame());
        account.made(bucket, row);
        return row;
    }

    private List<byte[]> toAll(JournalRow.Item item) {
        long place = isApplied || item.port() == Frames.VISIT_PORT ? 0 : LAST;
        byte[] frame = controlsPrecede ? Frames.withSequence(item.frame(), place) : item.frame();
        return targets.stream()
                .filter(target -> later.contains(item.port()))
                .map(target -> new ShuffleRow(target, ShuffleRow.Kind.DATA, -1, item.origin(), -1, maker,
                        frame).toBytes())
                .toList();
    }
}
