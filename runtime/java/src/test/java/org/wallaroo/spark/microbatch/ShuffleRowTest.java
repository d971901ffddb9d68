package org.wallaroo.spark.microbatch;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.wallaroo.spark.message.Frames;

class ShuffleRowTest {
    private static ShuffleRow drawn(Random random, int different) {
        ByteBuffer frame = ByteBuffer.allocate(Frames.HEADER_BYTES + random.nextInt(3)).order(ByteOrder.LITTLE_ENDIAN);
        frame.putShort(6, (short) random.nextInt(different)).putInt(8, random.nextInt(different));
        frame.putLong(16, random.nextInt(different)).putLong(24, random.nextInt(different));
        ShuffleRow.Kind kind = ShuffleRow.Kind.values()[random.nextInt(3)];
        ShuffleRow.Maker maker = new ShuffleRow.Maker(random.nextInt(3), random.nextInt(9), random.nextLong());
        return new ShuffleRow(random.nextInt(), kind, random.nextInt(9) - 1, random.nextInt(), random.nextInt(different),
                maker, frame.array());
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4})
    void bytesHaveAllFields(long seed) {
        Random random = new Random(seed);
        for (int i = 0; i < 200; i++) {
            ShuffleRow row = drawn(random, 60_000);
            byte[] bytes = row.toBytes();
            ShuffleRow found = ShuffleRow.fromBytes(bytes);
            assertEquals(row.target(), ShuffleRow.targetOf(bytes));
            assertArrayEquals(row.payload(), found.payload());
            assertArrayEquals(bytes, found.toBytes());
            assertEquals(row.maker(), found.maker());
            assertEquals(row.kind(), found.kind());
        }
    }

    /** A shuffle brings the rows of a partition in any order. After sorting, their order is always the same. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4})
    void theOrderDependsOnTheFramesAlone(long seed) {
        Random random = new Random(seed);
        List<ShuffleRow> rows = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            rows.add(drawn(random, 3));
        }
        List<byte[]> first = null;
        for (int round = 0; round < 5; round++) {
            Collections.shuffle(rows, random);
            List<ShuffleRow> ordered = new ArrayList<>(rows);
            ordered.sort(ShuffleRow.ORDER);
            List<byte[]> payloads = ordered.stream().map(ShuffleRow::payload).toList();
            first = first == null ? payloads : first;
            for (int i = 0; i < payloads.size(); i++) {
                assertArrayEquals(first.get(i), payloads.get(i));
            }
        }
    }
}
