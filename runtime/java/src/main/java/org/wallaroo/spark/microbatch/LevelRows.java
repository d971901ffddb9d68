package org.wallaroo.spark.microbatch;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.ChainedIterator;
import org.wallaroo.spark.query.Fault;
import org.wallaroo.spark.query.Settings;

/**
 * Runs a level (the stages between two shuffles) on the rows of a partition, and yields the output as early as
 * possible.
 *
 * <p>A row that the level does not run passes through at once. A row that the level runs is held until all rows have
 * come, since calls take rows in order. Frames that the last level stages are held, too.
 */
final class LevelRows extends ChainedIterator<byte[]> {
    private final Iterator<byte[]> rows;
    private final Function<List<JournalRow.Item>, Iterator<List<JournalRow.Item>>> level;
    private final LevelOutput output;
    private final TaskAccount account;
    private final boolean isLast;
    private final boolean isStaging; // whether this is the last level, and stages the frames that pass through
    private final Set<Integer> entries = new HashSet<>();
    private final Set<Integer> later;
    private List<ShuffleRow> held = new ArrayList<>();
    private Iterator<List<JournalRow.Item>> leaving; // outputs of the level; null while rows still come
    private boolean isFinished;

    /**
     * Makes the iterator.
     *
     * @param number number of the level
     * @param rows rows of the partition
     * @param level function that runs frames on the level, and returns the output step by step
     */
    LevelRows(Settings settings, int number, Iterator<byte[]> rows,
            Function<List<JournalRow.Item>, Iterator<List<JournalRow.Item>>> level, LevelOutput output,
            TaskAccount account) {
        this.rows = rows;
        this.level = level;
        this.output = output;
        this.account = account;
        isLast = number + 1 == settings.levels().size();
        isStaging = isLast && !output.yieldsFrames();
        settings.levels().get(number).forEach(stage -> entries.addAll(stage.entries()));
        later = settings.laterPorts().get(number);
    }

    @Override
    protected Iterator<byte[]> following() {
        if (isFinished) {
            return null;
        }
        if (rows.hasNext()) {
            return taken(rows.next()).iterator();
        }
        if (leaving == null) {
            leaving = level.apply(run());
        }
        if (leaving.hasNext()) {
            return output.take(leaving.next().stream().filter(item -> !Frames.isControl(item.port())).toList()).iterator();
        }
        isFinished = true;
        Fault.reach("task.before_close");
        return output.finish();
    }

    private List<byte[]> taken(byte[] bytes) {
        ShuffleRow row = ShuffleRow.fromBytes(bytes);
        if (row.kind() == ShuffleRow.Kind.ACCOUNT) {
            return output.pass(row);
        }
        boolean isMine = isMine(row);
        if (!Frames.isControl(row.port()) && (isMine || isLast) && row.messages() > 0) {
            account.took(row.bucket() < 0 ? row.port() : row.bucket(), row);
        }
        if (isMine || isStaging) {
            held.add(row);
        }
        if (isStaging || !isPassing(row)) {
            return List.of();
        }
        return isLast ? output.pass(row) : List.of(bytes);
    }

    private boolean isMine(ShuffleRow row) {
        return row.kind() == ShuffleRow.Kind.DATA && entries.contains(row.port());
    }

    private boolean isPassing(ShuffleRow row) {
        return row.kind() == ShuffleRow.Kind.DONE || later.contains(row.port());
    }

    /**
     * Returns those held frames that the level runs, in order. At the last level, also stages held frames that earlier
     * levels have finished.
     *
     * <p>Of ticks after all records only the last one runs: records that waited for the micro-batch are no silence.
     */
    private List<JournalRow.Item> run() {
        held.sort(ShuffleRow.ORDER);
        List<JournalRow.Item> items = new ArrayList<>();
        for (int at = 0; at < held.size(); at++) {
            ShuffleRow row = held.get(at);
            boolean isFollowed = row.isLastTick() && at + 1 < held.size() && held.get(at + 1).isLastTick();
            if (isMine(row) && !isFollowed) {
                items.add(new JournalRow.Item(row.port(), row.bucket(), row.origin(), row.payload()));
            }
            if (isStaging && isPassing(row)) {
                output.pass(row);
            }
        }
        held = List.of();
        return items;
    }
}
