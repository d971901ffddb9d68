package org.wallaroo.spark.microbatch;

import java.io.Closeable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.wallaroo.spark.journal.JournalPlace;
import org.wallaroo.spark.journal.JournalRange;
import org.wallaroo.spark.message.Arrivals;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalOrigins;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.ChainedIterator;
import org.wallaroo.spark.query.Fault;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.rpc.Credentials;
import org.wallaroo.spark.stage.SourceLevel;

/** Runs level 0 (the steps before the first shuffle) over ranges of journals. */
final class SourceTask implements MapPartitionsFunction<byte[], byte[]> {
    private static final long serialVersionUID = 1L;

    private final Settings settings;
    private final HashMap<String, String[]> credentials = Credentials.all();

    SourceTask(Settings settings) {
        this.settings = settings;
    }

    @Override
    public Iterator<byte[]> call(Iterator<byte[]> parts) {
        Credentials.putAll(credentials);
        Attempt attempt = Attempt.current();
        TaskAccount account = new TaskAccount(attempt, 0);
        LevelOutput output = new LevelOutput(settings, 0, attempt, account, false);
        Parts rows = new Parts(settings, parts, account);
        TaskContext.get().addTaskCompletionListener(ended -> {
            rows.close();
        });
        Fault.reach("task.before_stage");
        var origins = new JournalOrigins(settings.topics());
        return run(SourceLevel.of(settings, 0, attempt, rows, origins, account), output, List::of);
    }

    /**
     * Returns the rows of a task of level 0: rows for the outputs of the level, then the last rows of the task.
     *
     * @param last returns the items to send after all outputs
     */
    static Iterator<byte[]> run(SourceLevel level, LevelOutput output, Supplier<List<JournalRow.Item>> last) {
        TaskEnd end = TaskEnd.of(level::close);
        output.abortOnFailure();
        return new ChainedIterator<>() {
            private boolean isFinished;

            @Override
            protected Iterator<byte[]> following() {
                if (level.hasNext()) {
                    return output.take(level.next()).iterator();
                }
                if (isFinished) {
                    return null;
                }
                isFinished = true;
                end.close();
                return ending(output, last.get());
            }
        };
    }

    /** Returns the last rows of a task: rows for the last items, then the rows with which the output finishes. */
    static Iterator<byte[]> ending(LevelOutput output, List<JournalRow.Item> items) {
        List<byte[]> rows = new ArrayList<>(output.take(items));
        output.finish().forEachRemaining(rows::add);
        return rows.iterator();
    }

    /** Yields the frames of ranges of journals, one range after the other, and counts them in the task's account. */
    static final class Parts implements Iterator<JournalRow>, Closeable {
        private final Settings settings;
        private final Iterator<byte[]> parts;
        private final TaskAccount account;
        private final Set<Integer> sources;
        private JournalRange range;

        Parts(Settings settings, Iterator<byte[]> parts, TaskAccount account) {
            this.settings = settings;
            this.parts = parts;
            this.account = account;
            this.sources = Set.copyOf(settings.levels().get(0).get(0).entries());
        }

        @Override
        public boolean hasNext() {
            while ((range == null || !range.hasNext()) && parts.hasNext()) {
                JournalPart part = JournalPart.fromBytes(parts.next());
                close();
                JournalPlace place = JournalPlace.of(settings.journals().get(part.number()));
                range = place.range(part.start(), part.end(), settings.rowBytes());
                account.bytes(part.end() - part.begin(), place.isSent());
            }
            return range != null && range.hasNext();
        }

        @Override
        public JournalRow next() {
            JournalRow row = range.next();
            for (JournalRow.Item item : row.items()) {
                var counts = Frames.countByPort(item.frame());
                counts.keySet().removeIf(Frames::isControl);
                account.read(counts.values().stream().mapToLong(Long::longValue).sum(),
                        Arrivals.now(item.frame(), row.place().offset(), sources, Set.of()));
            }
            return row;
        }

        @Override
        public void close() {
            if (range != null) {
                range.close();
            }
        }
    }
}
