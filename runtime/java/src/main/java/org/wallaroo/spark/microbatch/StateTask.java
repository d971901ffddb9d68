package org.wallaroo.spark.microbatch;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.wallaroo.spark.bucket.SparkBucketStore;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.Fault;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.rpc.Credentials;
import org.wallaroo.spark.stage.CallScope;
import org.wallaroo.spark.stage.Level;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/** A level after a shuffle: all buckets of a partition, whose states are in Spark's store. */
final class StateTask extends StatefulProcessor<Integer, byte[], byte[]> {
    private static final long serialVersionUID = 1L;

    private final Settings settings;
    private final HashMap<String, String[]> credentials = Credentials.all();
    private final int number;
    private transient SparkBucketStore store;

    StateTask(Settings settings, int number) {
        this.settings = settings;
        this.number = number;
    }

    @Override
    public void init(OutputMode mode, TimeMode time) {
        store = new SparkBucketStore(getHandle());
    }

    @Override
    public Iterator<byte[]> handleInputRows(
            Integer key, Iterator<byte[]> rows, TimerValues timers) {
        Credentials.putAll(credentials);
        Attempt attempt = settings.isRehearsal() ? Attempt.current().rehearsing() : Attempt.current();
        TaskAccount account = new TaskAccount(attempt, number);
        LevelOutput output = new LevelOutput(settings, number, attempt, account);
        TaskContext.get().addTaskFailureListener((failed, error) -> {
            output.abort();
        });
        CallScope scope = new CallScope(attempt.partition(), settings.targets().size(), true);
        List<byte[]> made = new ArrayList<>();
        try (Level level = Level.of(settings.stages(number), attempt, store, account, scope)) {
            List<ShuffleRow> sorted = sorted(rows);
            if (settings.isRehearsal()) {
                level.warm();
                boolean isLast = number + 1 == settings.levels();
                sorted.forEach(row -> made.add(isLast ? new byte[0] : row.toBytes()));
                return CollectionConverters.asScala(made.iterator());
            }
            List<JournalRow.Item> items = new ArrayList<>();
            for (ShuffleRow row : sorted) {
                take(row, items, made, output, account);
            }
            made.addAll(output.take(level.flush(items).stream().filter(item -> !Frames.isControl(item.port())).toList()));
        }
        Fault.reach("task.before_close");
        output.finish().forEachRemaining(made::add);
        return CollectionConverters.asScala(made.iterator());
    }

    private void take(
            ShuffleRow row, List<JournalRow.Item> items, List<byte[]> made, LevelOutput output, TaskAccount account) {
        if (row.kind() == ShuffleRow.Kind.ACCOUNT) {
            made.addAll(output.pass(row));
            return;
        }
        boolean isLast = number + 1 == settings.levels();
        boolean isMine = row.kind() == ShuffleRow.Kind.DATA && entries().contains(row.port());
        boolean isControl = Frames.isControl(row.port());
        if (!isControl && (isMine || isLast) && row.messages() > 0) {
            account.took(row.bucket() < 0 ? row.port() : row.bucket(), row);
        }
        if (isMine) {
            items.add(new JournalRow.Item(row.port(), row.bucket(), row.origin(), row.payload()));
        }
        boolean isPassing = row.kind() == ShuffleRow.Kind.DONE || settings.laterPorts(number).contains(row.port());
        if (isPassing) {
            made.addAll(output.pass(row));
        }
    }

    private transient Set<Integer> entries;

    private Set<Integer> entries() {
        if (entries == null) {
            entries = new HashSet<>();
            settings.stages(number).forEach(stage -> entries.addAll(stage.entries()));
        }
        return entries;
    }

    private static List<ShuffleRow> sorted(Iterator<byte[]> rows) {
        List<ShuffleRow> found = new ArrayList<>();
        while (rows.hasNext()) {
            found.add(ShuffleRow.fromBytes(rows.next()));
        }
        found.sort(ShuffleRow.ORDER);
        return found;
    }
}
