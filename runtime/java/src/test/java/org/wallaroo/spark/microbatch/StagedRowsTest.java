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

    /** A drawn message for a sink. */
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

    private static List<Row> read(Path path, boolean joins) throws IOException {
        List<Row> found = new ArrayList<>();
        Iterator<Row> rows = new StagedRows.Reader(joins).call(path.toString());
        rows.forEachRemaining(found::add);
        return found;
    }

    private static byte[] drawnBytes(Random random, int most) {
        return random.nextInt(4) == 0 ? null : new byte[random.nextInt(1, most)];
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void framesBecomeRows(long seed) throws IOException {
        Random random = new Random(seed);
        for (int round = 0; round < 20; round++) {
            List<Drawn> messages = new ArrayList<>();
            for (int count = random.nextInt(20); count > 0; count--) {
                messages.add(new Drawn(drawnBytes(random, 9), drawnBytes(random, 300),
                        random.nextBoolean() ? null : random.nextInt(-1, 4)));
            }
            Path path = file(messages, random);
            List<Row> all = read(path, false);
            assertEquals(messages.size(), all.size());
            for (int i = 0; i < messages.size(); i++) {
                Drawn drawn = messages.get(i);
                assertArrayEquals(drawn.key, all.get(i).<byte[]>getAs(0));
                assertArrayEquals(drawn.value, all.get(i).<byte[]>getAs(1));
            }
        }
    }

    /** The arrays of a frame have its values in order, and all but the last one have at least 64 KiB. */
    @ParameterizedTest
    @ValueSource(ints = {1, 100, 5000, 200_000})
    void jsonBecomesArrays(int most) throws IOException {
        Random random = new Random(most);
        List<Drawn> messages = new ArrayList<>();
        for (int count = random.nextInt(40); count >= 0; count--) {
            messages.add(new Drawn(drawnBytes(random, 9), ("\"" + "v".repeat(random.nextInt(most)) + "\"").getBytes(), null));
        }
        StringBuilder joined = new StringBuilder();
        for (Row row : read(file(messages, random), true)) {
            String array = new String(row.<byte[]>getAs(1));
            assertTrue(row.isNullAt(0) && array.startsWith("[") && array.endsWith("]"));
            joined.append(array, 1, array.length() - 1).append(',');
        }
        StringBuilder wanted = new StringBuilder();
        messages.forEach(each -> wanted.append(new String(each.value)).append(','));
        assertEquals(wanted.toString(), joined.toString());
    }

    @Test
    void aFileThatIsCutOrChangedIsNoOutput() throws IOException {
        Path path = file(List.of(new Drawn(null, new byte[50], null)), new Random(1));
        byte[] whole = Files.readAllBytes(path);
        for (int at = 1; at < whole.length; at++) {
            Files.write(path, Arrays.copyOf(whole, at));
            assertThrows(UncheckedIOException.class, () -> read(path, false));
            byte[] changed = whole.clone();
            changed[at] ^= 1;
            Files.write(path, changed);
            assertThrows(UncheckedIOException.class, () -> read(path, false));
        }
        Files.write(path, new byte[0]);
        assertTrue(read(path, false).isEmpty());
    }
}
