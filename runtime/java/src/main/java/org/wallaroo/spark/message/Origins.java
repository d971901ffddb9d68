package org.wallaroo.spark.message;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import wallaroo.worker.v1.WorkerOuterClass.DeadLetter;
import wallaroo.worker.v1.WorkerOuterClass.Origin;

/**
 * Puts into dead letters which record of Kafka they are of; {@code spark/task/origin.py} does it in micro-batches.
 *
 * <p>In a frame of the journal the last message of each run of one partition, whose offsets follow each other, has a
 * header with partition and next offset.
 *
 * @param topics those that are read, by port
 */
public record Origins(Map<Integer, Topic> topics) {
    private static final int KEY_BYTES = 200; // of a key, which is there to be shown
    private static final byte[] POINT = "\16\0wallaroo.point\20\0\0\0".getBytes(StandardCharsets.ISO_8859_1);

    /**
     * A topic.
     *
     * @param source that reads it
     * @param name of the topic
     */
    public record Topic(String source, String name) {}

    /**
     * Returns what frames of the journal have given, with origins in its dead letters.
     *
     * @param given frames of any ports
     * @param data one or more whole frames of sources
     */
    public List<JournalRow.Item> put(List<JournalRow.Item> given, byte[] data) {
        if (topics.isEmpty() || given.stream().noneMatch(item -> item.port() == Frames.DEAD_LETTER_PORT)) {
            return given;
        }
        List<Columns> frames = new ArrayList<>();
        for (byte[] frame : Frames.ofPorts(data, topics.keySet())) {
            frames.add(Columns.read(frame));
        }
        return given.stream().map(item -> item.port() == Frames.DEAD_LETTER_PORT ? with(item, frames) : item).toList();
    }

    private JournalRow.Item with(JournalRow.Item item, List<Columns> frames) {
        LetterFrame read = LetterFrame.read(item.frame());
        List<LetterFrame.Letter> letters = read.letters().stream().map(letter -> with(letter, frames)).toList();
        return letters.equals(read.letters()) ? item
                : new JournalRow.Item(item.port(), item.bucket(), item.origin(),
                        new LetterFrame(read.timestamp(), letters).toBytes());
    }

    private LetterFrame.Letter with(LetterFrame.Letter letter, List<Columns> frames) {
        for (Columns frame : frames) {
            Origin.Builder found = frame.origin(letter.sequence());
            if (found != null) {
                Topic topic = topics.get(frame.port);
                found.setSource(topic.source()).setTopic(topic.name());
                return new LetterFrame.Letter(letter.sequence(), letter.path(), with(letter.value(), found));
            }
        }
        return letter;
    }

    private static byte[] with(byte[] letter, Origin.Builder origin) {
        try {
            return DeadLetter.parseFrom(letter).toBuilder().setOrigin(origin).build().toByteArray();
        } catch (InvalidProtocolBufferException error) {
            throw new IllegalArgumentException("it was a dead letter before", error);
        }
    }

    /** What is wanted of a frame of the journal, whose sequences have no gaps. */
    private record Columns(int port, long first, byte[][] keys, long[] indexes, byte[][] headers) {
        private static Columns read(byte[] frame) {
            ByteBuffer buffer = ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN);
            int flags = frame[4];
            int count = buffer.getInt(8);
            buffer.position(Frames.HEADER_BYTES);
            boolean hasKeys = (flags & LetterFrame.KEYS) != 0;
            byte[][] keys = hasKeys ? pieces(buffer, buffer.getInt()) : new byte[0][];
            long[] indexes = hasKeys ? LetterFrame.column(buffer, count) : new long[0];
            if ((flags & LetterFrame.SEQUENCES) != 0) {
                LetterFrame.column(buffer, count);
            }
            if ((flags & LetterFrame.TIMESTAMPS) != 0) {
                LetterFrame.column(buffer, count);
            }
            byte[][] headers = (flags & LetterFrame.HEADERS) != 0 ? pieces(buffer, count) : new byte[0][];
            return new Columns(Frames.port(frame, 0), buffer.getLong(16), keys, indexes, headers);
        }

        private static byte[][] pieces(ByteBuffer buffer, int count) {
            long[] lengths = LetterFrame.column(buffer, count);
            byte[][] found = new byte[count][];
            for (int i = 0; i < count; i++) {
                found[i] = LetterFrame.take(buffer, lengths[i]);
            }
            return found;
        }

        /** Returns partition, offset and key of the message with a sequence; null: it is not here, or not known. */
        private Origin.Builder origin(long sequence) {
            if (sequence < first) {
                return null;
            }
            for (long at = sequence - first; at < headers.length; at++) {
                byte[] header = headers[(int) at];
                int start = header.length - POINT.length - 2 * Long.BYTES;
                if (start >= 0 && Arrays.equals(header, start, start + POINT.length, POINT, 0, POINT.length)) {
                    ByteBuffer point = ByteBuffer.wrap(header, start + POINT.length, 2 * Long.BYTES);
                    int partition = (int) point.getLong();
                    long offset = point.getLong() - 1 - (at - (sequence - first));
                    return Origin.newBuilder().setPartition(partition).setOffset(offset)
                            .setKey(key((int) (sequence - first)));
                }
            }
            return null;
        }

        private ByteString key(int index) {
            byte[] key = index < indexes.length ? keys[(int) indexes[index]] : new byte[0];
            return ByteString.copyFrom(key, 0, Math.min(key.length, KEY_BYTES));
        }
    }
}
