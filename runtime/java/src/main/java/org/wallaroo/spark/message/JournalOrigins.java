package org.wallaroo.spark.message;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import wallaroo.worker.v1.WorkerOuterClass.Origin;

/**
 * Finds the Kafka records of dead letters whose messages the gateway has read from a topic into the journal.
 *
 * <p>A frame of a topic consists of runs: records of one partition with successive offsets. The last message of each
 * run has a header with the partition and the offset after the run, from which the
 * offset of each record of the run follows.
 *
 * @param topics that the application reads, by port
 */
public record JournalOrigins(Map<Integer, Topic> topics) implements Origins {
    private static final byte[] POINT = "\16\0wallaroo.point\20\0\0\0".getBytes(StandardCharsets.ISO_8859_1);

    @Override
    public Function<LetterFrame.Letter, Origin> of(byte[] data) {
        if (topics.isEmpty()) {
            return null;
        }
        List<Columns> frames = new ArrayList<>();
        Frames.ofPorts(data, topics.keySet()).forEach(frame -> frames.add(Columns.read(frame)));
        return letter -> frames.stream()
                .filter(frame -> frame.sequence() <= letter.sequence()
                        && letter.sequence() < frame.sequence() + frame.count())
                .findFirst()
                .map(frame -> origin(frame, (int) (letter.sequence() - frame.sequence())))
                .orElse(null);
    }

    private Origin origin(Columns frame, int index) {
        for (int at = index; at < frame.headers().size(); at++) {
            byte[] header = frame.headers().get(at);
            int start = header.length - POINT.length - 2 * Long.BYTES;
            if (start >= 0 && Arrays.equals(header, start, start + POINT.length, POINT, 0, POINT.length)) {
                ByteBuffer point = ByteBuffer.wrap(header, start + POINT.length, 2 * Long.BYTES);
                int partition = (int) point.getLong();
                return topics.get(frame.port()).origin(partition, point.getLong() - 1 - (at - index), frame.key(index));
            }
        }
        return null;
    }
}
