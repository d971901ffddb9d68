package org.wallaroo.spark.microbatch;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.StructType;
import org.wallaroo.spark.message.Columns;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.message.LetterFrame;
import org.wallaroo.spark.query.AppliedSettings;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;
import wallaroo.worker.v1.WorkerOuterClass.DeadLetter;

/**
 * Turns the frames and accounts that leave the last level into rows, for a PySpark job that applies the application
 * ({@code apply}).
 *
 * <p>A row is a message for a sink, a dead letter, a state, or the counts of a task in the order of {@link
 * AppliedSettings#counts}. A dead letter that must end the query raises its error.
 */
final class OutputRows implements FlatMapFunction<byte[], Row> {
    static final StructType SCHEMA = StructType.fromDDL("output STRING, key BINARY, value BINARY, "
            + "dead_letter STRUCT<code: STRING, step: STRING, error: STRING, traceback: STRING, input: BINARY, "
            + "preview: STRING, key: BINARY, at_ms: LONG>, state STRUCT<name: STRING, key: BINARY, encoding: INT, value: BINARY>, "
            + "counts ARRAY<BIGINT>");
    private static final long serialVersionUID = 1L;

    private final Settings settings;

    OutputRows(Settings settings) {
        this.settings = settings;
    }

    @Override
    public Iterator<Row> call(byte[] frame) {
        AppliedSettings applied = settings.applied();
        if (TaskAccount.isAccount(frame)) {
            return List.of(counts(applied, TaskAccount.steps(frame))).iterator();
        }
        Columns columns = Columns.read(frame);
        List<Row> found = new ArrayList<>(columns.count());
        if (columns.port() == Frames.DEAD_LETTER_PORT) {
            JournalRow.Item item = new JournalRow.Item(columns.port(), -1, -1, frame);
            LetterFrame.Letter last = settings.policy().firstThatStops(List.of(item));
            if (last != null) {
                throw OperatorFailure.ended(LetterFrame.parsed(last.value()), applied.wayOut());
            }
            columns.values().forEach(letter -> found.add(row(LetterFrame.parsed(letter))));
            return found.iterator();
        }
        String output = applied.outputs().get(columns.port());
        if (applied.joinsRows()) {
            return columns.arrays().stream().map(array -> RowFactory.create(output, null, array, null, null, null)).iterator();
        }
        String state = applied.states().get(columns.port());
        for (int i = 0; i < columns.count(); i++) {
            byte[] key = columns.key(i);
            byte[] value = columns.absent().get(i) ? null : columns.values().get(i);
            found.add(state == null
                    ? RowFactory.create(output, key.length == 0 ? null : key, value, null, null, null)
                    : RowFactory.create(null, null, null, null, RowFactory.create(state, key, columns.encoding(), value),
                            null));
        }
        return found.iterator();
    }

    private static Row counts(AppliedSettings applied, Map<String, Map<String, Long>> steps) {
        Long[] counts = applied.counts().stream()
                .map(count -> steps.getOrDefault(count.path(), Map.of()).getOrDefault(count.name(), 0L))
                .toArray(Long[]::new);
        return RowFactory.create(null, null, null, null, null, counts);
    }

    private static Row row(DeadLetter letter) {
        Row row = RowFactory.create(letter.getCode(), letter.getStep(), letter.getError(), letter.getTraceback(),
                letter.getInput().toByteArray(), letter.getPreview(),
                letter.getHasKey() ? letter.getKey().toByteArray() : null, letter.getTimestampMs());
        return RowFactory.create(null, null, null, row, null, null);
    }
}
