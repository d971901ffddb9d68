package org.wallaroo.spark.microbatch;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Random;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.wallaroo.spark.message.FrameWriter;

class StagedRowsTest {
    private static final byte[] OTHER = HexFormat.of().parseHex("01006801000000" + "76");

    @TempDir
    Path directory;

    /** A message that a sink gets. */
    private record Drawn(byte[] key, byte[] value, Integer partition) {}

    private static byte[] chosen(int partition) {
        return HexFormat.of().parseHex("0900" + HexFormat.of().formatHex("partition".getBytes()) + "04000000"
                + String.format("%02x%06x", partition & 255, partition < 0 ? 0xffffff : 0));
    }

    private static byte[] headers(Integer partition, boolean hasOther) {
        byte[] other = hasOther ? OTHER : new byte[0];
        byte[] own = partition == null ? new byte[0] : chosen(partition);
        byte[] all = Arrays.copyOf(other, other.length + own.length);
        System.arraycopy(own, 0, all, other.length, own.length);
        return all;
    }

    private Path file(List<Drawn> messages, Random random) throws IOException {
        Path path = Files.createTempFile(directory, "staged", ".frames");
        for (int at = 0; at < messages.size(); ) {
            FrameWriter frame = new FrameWriter(1, random.nextBoolean() || messages.stream().anyMatch(each -> each.key != null));
            for (int count = 1 + random.nextInt(4); count > 0 && at < messages.size(); count--, at++) {
                Drawn drawn = messages.get(at);
                frame.add(at, 5, drawn.key, headers(drawn.partition, random.nextBoolean()), drawn.value);
            }
            Files.write(path, frame.toBytes(), java.nio.file.StandardOpenOption.APPEND);
        }
        return path;
    }

    private static List<Row> read(Path path, TopicLimits limits, boolean isRefused) throws IOException {
        List<Row> found = new ArrayList<>();
        Iterator<Row> rows = new StagedRows.Reader(limits, isRefused).call(path.toString());
        rows.forEachRemaining(found::add);
        return found;
    }

    private static byte[] drawnBytes(Random random, int most) {
        return random.nextInt(4) == 0 ? null : new byte[random.nextInt(1, most)];
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void framesBecomeRowsOfWhichATopicRefusesSome(long seed) throws IOException {
        Random random = new Random(seed);
        for (int round = 0; round < 20; round++) {
            List<Drawn> messages = new ArrayList<>();
            for (int count = random.nextInt(20); count > 0; count--) {
                messages.add(new Drawn(drawnBytes(random, 9), drawnBytes(random, 300),
                        random.nextBoolean() ? null : random.nextInt(-1, 4)));
            }
            Path path = file(messages, random);
            List<Row> all = read(path, null, false);
            assertEquals(messages.size(), all.size());
            TopicLimits limits = new TopicLimits(3, 200, 210, random.nextBoolean());
            List<Row> taken = read(path, limits, false);
            List<Row> refused = read(path, limits, true);
            int next = 0;
            int nextRefused = 0;
            for (int i = 0; i < messages.size(); i++) {
                Drawn drawn = messages.get(i);
                assertArrayEquals(drawn.key, all.get(i).<byte[]>getAs(0));
                assertArrayEquals(drawn.value, all.get(i).<byte[]>getAs(1));
                assertEquals(drawn.partition, all.get(i).get(2));
                boolean isRefused = drawn.partition != null && (drawn.partition < 0 || drawn.partition > 2)
                        || TopicLimits.bytes(drawn.key, drawn.value) > 200 || clientsBound(drawn.key, drawn.value) > 210
                        || limits.needsKey() && drawn.key == null;
                Row row = isRefused ? refused.get(nextRefused++) : taken.get(next++);
                assertArrayEquals(drawn.value, row.<byte[]>getAs(1));
                assertEquals(isRefused ? (long) i : null, row.get(3));
                assertEquals(isRefused ? limits.refusal(drawn.key, drawn.value, drawn.partition) : null, row.get(4));
            }
            assertEquals(List.of(taken.size(), refused.size()), List.of(next, nextRefused));
        }
    }

    /** Returns what {@code AbstractRecords.estimateSizeInBytesUpperBound} of Kafka 3.9 and 4.1 does, without headers. */
    private static long clientsBound(byte[] key, byte[] value) {
        long bytes = 61 + 21 + 1;
        for (byte[] piece : Arrays.asList(key, value)) {
            int length = piece == null ? -1 : piece.length;
            int rest = length << 1 ^ length >> 31;
            for (bytes++; (rest & ~0x7f) != 0; bytes++) {
                rest >>>= 7;
            }
            bytes += Math.max(length, 0);
        }
        return bytes;
    }

    @ParameterizedTest
    @ValueSource(ints = {300, 8_400, 1 << 20, 3_000_000})
    void theClientCountsMoreThanBrokers(int limit) {
        Random random = new Random(limit);
        int between = 0;
        for (int round = 0; round < 60; round++) {
            byte[] key = random.nextBoolean() ? null : new byte[random.nextInt(100)];
            byte[] value = new byte[limit - 110 - (key == null ? 0 : key.length) + round];
            boolean isRefused = clientsBound(key, value) > limit;
            assertEquals(isRefused, !new TopicLimits(1, Integer.MAX_VALUE, limit, false).refusal(key, value, null).isEmpty());
            boolean isTooLarge = TopicLimits.bytes(key, value) > limit;
            assertEquals(isTooLarge, !new TopicLimits(1, limit, Integer.MAX_VALUE, false).refusal(key, value, null).isEmpty());
            assertTrue(isRefused || !isTooLarge);
            between += isRefused && !isTooLarge ? 1 : 0;
        }
        assertTrue(between > 5, () -> "too few sizes are between the limits");
        assertEquals(1_048_577, clientsBound(null, new byte[1_048_490]), "measured with Kafka's client");
    }

    @Test
    void aTopicSaysWhyItRefuses() {
        TopicLimits limits = new TopicLimits(3, 1000, 1010, true);
        byte[] ann = {'A', 'n', 'n'};
        assertEquals("it has no partition 3, but 0 to 2", limits.refusal(ann, ann, 3));
        assertEquals("the record has 1003 bytes; 1000 are possible, with key and batch",
                limits.refusal(ann, new byte[930], null));
        assertEquals("the record has 1011 bytes as Kafka's client counts them; 1010 are possible",
                limits.refusal(ann, new byte[922], null));
        assertEquals("the record has 1019 bytes as Kafka's client counts them; 900 are possible",
                new TopicLimits(3, 1000, 900, true).refusal(ann, new byte[930], null));
        assertEquals("it is compacted, and the record has no key", limits.refusal(null, ann, 0));
        assertEquals("", limits.refusal(ann, new byte[920], 2));
    }

    @Test
    void aFileThatIsCutOrChangedIsNoOutput() throws IOException {
        Path path = file(List.of(new Drawn(null, new byte[50], null)), new Random(1));
        byte[] whole = Files.readAllBytes(path);
        for (int at = 1; at < whole.length; at++) {
            Files.write(path, Arrays.copyOf(whole, at));
            assertThrows(UncheckedIOException.class, () -> read(path, null, false));
            byte[] changed = whole.clone();
            changed[at] ^= 1;
            Files.write(path, changed);
            assertThrows(UncheckedIOException.class, () -> read(path, null, false));
        }
        Files.write(path, new byte[0]);
        assertTrue(read(path, null, false).isEmpty());
    }
}
