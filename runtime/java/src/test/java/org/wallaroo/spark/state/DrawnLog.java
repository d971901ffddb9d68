package org.wallaroo.spark.state;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.wallaroo.spark.bucket.BucketVersion;
import org.wallaroo.spark.bucket.PlainStore;
import org.wallaroo.spark.message.FramesTest;

/** A drawn log, and as a reference the states at its end. */
final class DrawnLog {
    static final int KEYS = 1;
    static final int ABSENT = 16;
    final List<byte[]> entries = new ArrayList<>();
    final Map<StateKey, byte[]> states = new TreeMap<>();
    final Map<StateKey, Integer> encodings = new HashMap<>();

    DrawnLog(Random random) {
        for (int left = random.nextInt(8); left > 0; left--) {
            add(random, 1 + random.nextInt(2), 16 + random.nextInt(2));
        }
    }

    static byte[] key(Random random) {
        byte[] key = new byte[random.nextInt(3)];
        for (int i = 0; i < key.length; i++) {
            key[i] = (byte) (random.nextInt(3) * 127);
        }
        return key;
    }

    private void add(Random random, int port, int encoding) {
        List<byte[]> keys = new ArrayList<>();
        List<byte[]> values = new ArrayList<>();
        int count = 1 + random.nextInt(4);
        byte[] absent = new byte[1];
        for (int i = 0; i < count; i++) {
            byte[] value = new byte[random.nextInt(400)];
            random.nextBytes(value);
            StateKey key = new StateKey(port, key(random));
            boolean isAbsent = random.nextInt(4) == 0;
            keys.add(key.key());
            values.add(isAbsent ? new byte[0] : value);
            if (isAbsent) {
                absent[0] |= (byte) (1 << i);
                states.remove(key);
            } else {
                states.put(key, value);
                encodings.put(key, encoding);
            }
        }
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        body.writeBytes(u32(count));
        column(body, keys.stream().mapToInt(key -> key.length).toArray());
        keys.forEach(body::writeBytes);
        column(body, java.util.stream.IntStream.range(0, count).toArray());
        body.writeBytes(absent);
        column(body, values.stream().mapToInt(value -> value.length).toArray());
        values.forEach(body::writeBytes);
        entries.add(FramesTest.withEncoding(
                FramesTest.frame(KEYS | ABSENT, port, count, 0, body.toByteArray()), encoding));
    }

    private static byte[] u32(int value) {
        return ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(value).array();
    }

    private static void column(ByteArrayOutputStream body, int... numbers) {
        body.write(4);
        for (int number : numbers) {
            body.writeBytes(u32(number));
        }
    }

    /** Returns the rows of Spark's store for this log, if wanted with an entry that an older snapshot may have left. */
    List<Row> rows(int bucket, int first, boolean hasOlder) {
        byte[] version = ByteBuffer.allocate(40).putLong(1).putLong(1).putInt(first).putInt(first + entries.size())
                .putLong(0).putLong(0).array();
        List<Row> rows = new ArrayList<>();
        rows.add(row(bucket, -1, version));
        if (hasOlder) {
            rows.add(row(bucket, first - 1, new byte[] {7}));
        }
        for (int i = 0; i < entries.size(); i++) {
            rows.add(row(bucket, first + i, entries.get(i)));
        }
        return rows;
    }

    static Row row(int bucket, int entry, byte[] value) {
        return RowFactory.create((long) bucket << 32 | entry & 0xffffffffL, value);
    }

    /** Returns the rows of Spark's store for the log of a bucket in a store. */
    static List<Row> rows(PlainStore store, int bucket) {
        BucketVersion version = store.version(bucket);
        List<Row> rows = new ArrayList<>();
        if (version.counter() > 0) {
            List<byte[]> log = store.log(bucket, version);
            rows.add(row(bucket, -1, ByteBuffer.allocate(40).putLong(1).putLong(version.nonce()).putInt(version.first())
                    .putInt(version.last()).putLong(0).putLong(0).array()));
            for (int i = 0; i < log.size(); i++) {
                rows.add(row(bucket, version.first() + i, log.get(i)));
            }
        }
        return rows;
    }
}
