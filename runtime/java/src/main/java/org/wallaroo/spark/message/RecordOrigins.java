package org.wallaroo.spark.message;

import com.google.protobuf.InvalidProtocolBufferException;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;
import java.util.function.IntSupplier;
import wallaroo.record.v1.RecordOuterClass.Record;
import wallaroo.worker.v1.WorkerOuterClass.DeadLetter;
import wallaroo.worker.v1.WorkerOuterClass.Origin;

/**
 * Finds the Kafka records of dead letters in micro-batches, in a task for which Spark reads one partition of a topic.
 * The sequence of each message is the offset of its record.
 *
 * <p>For a topic that is a table, sequences are not offsets. But its decoder gets whole records, so a dead letter of
 * the decoder contains the record.
 *
 * @param path of the source
 * @param isTable whether the topic is a table
 * @param partition that the task reads
 */
public record RecordOrigins(Topic topic, String path, boolean isTable, IntSupplier partition) implements Origins {
    private static final byte[] NONE = {};

    @Override
    public Function<LetterFrame.Letter, Origin> of(byte[] data) {
        if (isTable) {
            return this::ofTable;
        }
        Map<Long, byte[]> keys = new HashMap<>(); // by offset
        if (data.length > 0) {
            Columns frame = Columns.read(data);
            for (int i = 0; i < frame.count(); i++) {
                keys.put(frame.sequence(i), frame.key(i));
            }
        }
        return letter -> topic.origin(partition.getAsInt(), letter.sequence(), keys.getOrDefault(letter.sequence(), NONE));
    }

    private Origin ofTable(LetterFrame.Letter letter) {
        try {
            DeadLetter read = DeadLetter.parseFrom(letter.value());
            if (!read.getPath().equals(path) || read.getInput().isEmpty()) {
                return null;
            }
            Record record = Record.parseFrom(read.getInput());
            return topic.origin(partition.getAsInt(), record.getOffset(), record.getKey().toByteArray());
        } catch (InvalidProtocolBufferException error) {
            return null; // the decoder's input is no record
        }
    }
}
