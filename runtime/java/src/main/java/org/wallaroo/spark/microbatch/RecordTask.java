package org.wallaroo.spark.microbatch;

import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Row;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.message.Origins;
import org.wallaroo.spark.message.RecordOrigins;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.Fault;
import org.wallaroo.spark.query.RecordSource;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.rpc.Credentials;
import org.wallaroo.spark.stage.SourceLevel;

/** Runs level 0 (the steps before the first shuffle) over the rows of a source that Spark reads, such as a topic. */
final class RecordTask implements MapPartitionsFunction<Row, byte[]> {
    private static final long serialVersionUID = 1L;

    private final Settings settings;
    private final int number;
    private final HashMap<String, String[]> credentials = Credentials.all();

    /**
     * Makes the task.
     *
     * @param number number of the source in the list of sources that Spark reads
     */
    RecordTask(Settings settings, int number) {
        this.settings = settings;
        this.number = number;
    }

    @Override
    public Iterator<byte[]> call(Iterator<Row> rows) {
        return PlainErrors.of(settings, () -> made(rows));
    }

    private Iterator<byte[]> made(Iterator<Row> rows) {
        Credentials.putAll(credentials);
        Attempt attempt = Attempt.current();
        RecordSource source = settings.records().get(number);
        TaskAccount account = new TaskAccount(attempt, 0);
        LevelOutput output = new LevelOutput(settings, 0, attempt, account, source.table());
        if (!rows.hasNext()) {
            return SourceTask.ending(output, ticks(Long.MIN_VALUE));
        }
        boolean isApplied = settings.applied() != null;
        RecordFrames frames = new RecordFrames(
                source, rows, attempt.batch(), account, isApplied && settings.applied().isOrdered(),
                isApplied ? new WindowTime(settings).last() : -1);
        Origins origins = source.topic()
                ? new RecordOrigins(new Origins.Topic(source.name(), source.place()), source.path(), source.table(),
                        frames::partition)
                : Origins.NONE;
        Fault.reach("task.before_stage");
        SourceLevel level = SourceLevel.of(settings, source.stage(), attempt, frames, origins, account);
        return SourceTask.run(level, output, () -> ticks(frames.latest()));
    }

    private List<JournalRow.Item> ticks(long latest) {
        return settings.applied() != null ? new WindowTime(settings).tickOfTask(number, latest) : List.of();
    }
}
