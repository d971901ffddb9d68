package org.wallaroo.spark.microbatch;

import com.google.protobuf.ByteString;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.List;
import java.util.TreeMap;
import org.apache.spark.sql.Row;
import org.wallaroo.spark.message.FrameWriter;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.message.LetterFrame;
import org.wallaroo.spark.message.Origins;
import org.wallaroo.spark.query.RecordSource;
import wallaroo.record.v1.RecordOuterClass.Header;
import wallaroo.record.v1.RecordOuterClass.Record;
import wallaroo.worker.v1.WorkerOuterClass.Origin;

/**
 * Packs the rows of one partition of a source that Spark reads into frames, in order.
 *
 * <p>The columns are sequence, key, value, timestamp_ms and headers, and for a topic also partition and offset. If rows
 * are ordered, the sequence is the position of the value, and null precedes all values. Otherwise rows with a null
 * sequence are numbered here. A row that is too large is a dead letter, in a separate frame.
 *
 * <p>The largest sequences belong to ticks, so sequences cannot express null and all 64-bit values. Therefore a message
 * also has a place: -1 for null, 0 for most values, more for the largest values. All messages of a frame have the same
 * place. Among messages with equal sequences, those with the lower place come first.
 */
final class RecordFrames implements Iterator<JournalRow> {
    static final int FRAME_BYTES = 512 << 10;
    static final int FRAME_MESSAGES = 8192;
    private static final int MOST_NAME_BYTES = 65_535; // longest name of a header
    private static final byte[] NONE = {};
    private static final int MESSAGE_BYTES = 32; // approximate size of a message without its contents

    private final RecordSource source;
    private final Iterator<Row> rows;
    private final TaskAccount account;
    private final boolean isOrdered;
    private final long last;
    private final TreeMap<Long, FrameWriter> begun = new TreeMap<>(); // by place
    private long bytes; // size of the messages in begun frames
    private boolean isEnding; // whether begun frames are being returned before the next row is read
    private long following;
    private int partition = -1;
    private long latest = Long.MIN_VALUE;
    private Message held; // message that is not yet in a frame
    private LetterFrame.Letter letter; // of the latest row if it is too large, until it is returned

    /**
     * Makes the iterator over frames.
     *
     * @param batch number of the micro-batch, from which messages get numbers if their source does not number them
     * @param account counts the messages
     * @param isOrdered whether the rows have the order of a column
     * @param last the last sequence of a message; larger ones become {@code last}, and get a separate place
     */
    RecordFrames(
            RecordSource source, Iterator<Row> rows, long batch, TaskAccount account, boolean isOrdered, long last) {
        this.source = source;
        this.isOrdered = isOrdered;
        this.last = last;
        this.rows = rows;
        this.account = account;
        this.following = batch << 32;
    }

    private record Message(long place, long sequence, long timeMs, byte[] key, byte[] headers, byte[] value) {
        long bytes() {
            return MESSAGE_BYTES + (long) (key == null ? 0 : key.length) + headers.length
                    + (value == null ? 0 : value.length);
        }
    }

    /** Returns the partition of the topic from which the last row was read; -1 if no row was read. */
    int partition() {
        return partition;
    }

    /** Returns the latest time of the rows that were read; {@code Long.MIN_VALUE} if none had a time. */
    long latest() {
        return latest;
    }

    @Override
    public boolean hasNext() {
        return isHolding() || letter != null || !begun.isEmpty();
    }

    /** Says whether a message waits for a frame. If none does, reads up to a message, or to a row that is too large. */
    private boolean isHolding() {
        while (held == null && letter == null && rows.hasNext()) {
            held = message(rows.next());
        }
        return held != null;
    }

    /** Returns the next frame as a row, with the place of its messages. */
    @Override
    public JournalRow next() {
        while (!isEnding && isHolding()) {
            FrameWriter mine = begun.get(held.place());
            isEnding = bytes > 0 && bytes + held.bytes() > FRAME_BYTES || mine != null && mine.count() == FRAME_MESSAGES;
            if (!isEnding) {
                bytes += held.bytes();
                begun.computeIfAbsent(held.place(), number -> new FrameWriter(source.port(), source.keys()))
                        .add(held.sequence(), held.timeMs(), held.key(), held.headers(), held.value());
                held = null;
            }
        }
        if (letter != null) {
            account.readBySpark(1);
            byte[] refused = new LetterFrame(0, List.of(letter)).toBytes();
            letter = null;
            return row(0, refused);
        }
        long place = begun.firstKey();
        FrameWriter frame = begun.remove(place);
        isEnding &= !begun.isEmpty();
        bytes = isEnding ? bytes : 0;
        count(frame);
        return row(place, frame.toBytes());
    }

    private static JournalRow row(long place, byte[] frame) {
        List<JournalRow.Item> items = List.of(new JournalRow.Item(0, -1, -1, frame));
        return new JournalRow(JournalRow.Kind.FRAMES, new JournalRow.Place(place, 0, -1), items);
    }

    private void count(FrameWriter frame) {
        account.readBySpark(frame.count());
        if (!source.topic() || source.table()) {
            return; // the times of other sources may come from their data
        }
        long now = System.currentTimeMillis();
        long[] times = frame.times();
        for (int from = 0, to = 1; from < times.length; to++) {
            if (to == times.length || times[to] != times[from]) {
                account.arrived(times[from], now, to - from);
                from = to;
            }
        }
    }

    /** Returns the message of a row. If it is too large, returns null, and {@code letter} gets its dead letter. */
    private Message message(Row row) {
        boolean isNull = row.isNullAt(0);
        long sequence = !isNull ? row.getLong(0) : isOrdered ? 0 : following;
        following++;
        long beyond = sequence < 0 ? Math.max(0, sequence - last) : 0;
        long at = isOrdered && isNull ? -1 : beyond;
        sequence -= beyond;
        byte[] key = row.getAs(1);
        byte[] value = row.getAs(2);
        long timeMs = row.getLong(3);
        if (WindowTime.isTime(timeMs)) {
            latest = Math.max(latest, timeMs);
        }
        List<Row> headers = row.isNullAt(4) ? List.of() : row.getList(4);
        if (source.topic()) {
            partition = row.getInt(5);
        }
        if (source.whole()) {
            value = whole(key, value, timeMs, headers, row.getLong(6));
            headers = List.of();
        }
        Message message = new Message(at, sequence, timeMs, key, encoded(headers), value);
        long size = source.whole() ? value.length : message.bytes() - MESSAGE_BYTES;
        if (size <= source.limit()) {
            return message;
        }
        Origin origin = !source.topic() ? null : new Origins.Topic(source.name(), source.place())
                .origin(partition, row.getLong(6), key == null ? NONE : key);
        letter = LargeRow.letter(
                source, message.sequence(), timeMs, size, row.isNullAt(2) ? NONE : row.<byte[]>getAs(2), origin);
        return null;
    }

    /** Returns a record of Kafka, serialized with key, headers and position, as the value of a message. */
    private byte[] whole(byte[] key, byte[] value, long timeMs, List<Row> headers, long offset) {
        Record.Builder record = Record.newBuilder()
                .setTopic(source.place()).setTimestampMs(timeMs).setPartition(partition).setOffset(offset);
        if (key != null) {
            record.setKey(ByteString.copyFrom(key));
        }
        if (value != null) {
            record.setValue(ByteString.copyFrom(value));
        }
        for (Row header : headers) {
            Header.Builder made = record.addHeadersBuilder().setKey(header.getString(0));
            if (!header.isNullAt(1)) {
                made.setValue(ByteString.copyFrom(header.<byte[]>getAs(1)));
            }
        }
        return record.build().toByteArray();
    }

    /** Returns the headers of a message as frames encode them. Drops headers whose names are too long for this. */
    private static byte[] encoded(List<Row> headers) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (Row header : headers) {
            byte[] name = header.getString(0).getBytes(StandardCharsets.UTF_8);
            if (name.length > MOST_NAME_BYTES) {
                continue;
            }
            byte[] value = header.isNullAt(1) ? NONE : header.getAs(1);
            all.writeBytes(ByteBuffer.allocate(6 + name.length + value.length).order(ByteOrder.LITTLE_ENDIAN)
                    .putShort((short) name.length).put(name).putInt(value.length).put(value).array());
        }
        return all.toByteArray();
    }
}
