package org.wallaroo.spark.microbatch;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.ByteString;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.wallaroo.spark.message.Columns;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.LetterFrame;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.RecordSource;
import scala.jdk.javaapi.CollectionConverters;
import wallaroo.worker.v1.WorkerOuterClass.DeadLetter;
import wallaroo.worker.v1.WorkerOuterClass.Origin;

class RecordFramesTest {
    private static final HexFormat HEX = HexFormat.of();
    private static final RecordSource VALUES = source(false, false, 1000);
    private static final RecordSource TABLE = source(true, true, 1000);
    private static final RecordSource FILES =
            new RecordSource(3, 0, "0/sources/0", "in", "text", 1 << 20, false, false, false, false, false);

    private static RecordSource source(boolean isWhole, boolean isTable, long limit) {
        return new RecordSource(3, 0, "0/sources/0", "in", "clicks", limit, true, isWhole, true, isTable, false);
    }

    private static TaskAccount account() {
        return new TaskAccount(new Attempt("q", 5, 0, 1), 0);
    }

    static Row row(Long sequence, byte[] key, byte[] value, long timeMs, List<Row> headers, long offset) {
        return RowFactory.create(sequence, key, value, timeMs,
                headers == null ? null : CollectionConverters.asScala(headers).toSeq(), 2, offset);
    }

    private static List<Columns> frames(RecordSource source, List<Row> rows, TaskAccount account) {
        List<Columns> found = new ArrayList<>();
        new RecordFrames(source, rows.iterator(), 5, account, false, -1)
                .forEachRemaining(row -> found.add(Columns.read(row.items().get(0).frame())));
        return found;
    }

    private static byte[] drawnBytes(Random random) {
        byte[] drawn = new byte[random.nextInt(3)];
        random.nextBytes(drawn);
        return random.nextInt(4) == 0 ? null : drawn;
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4})
    void recordsKeepOffsetKeyTimeAndAbsence(long seed) {
        Random random = new Random(seed);
        for (int round = 0; round < 50; round++) {
            boolean isTable = random.nextBoolean();
            RecordSource source = isTable ? source(false, true, 1000) : VALUES;
            List<Row> rows = new ArrayList<>();
            long offset = random.nextLong(1L << 40);
            for (int count = random.nextInt(30); count > 0; count--) {
                offset += 1 + random.nextInt(3);
                rows.add(row(isTable ? 0 : offset, drawnBytes(random), drawnBytes(random), random.nextLong(1L << 41) - 1,
                        random.nextBoolean() ? null : List.of(), offset));
            }
            TaskAccount account = account();
            List<Columns> frames = frames(source, rows, account);
            assertEquals(rows.isEmpty() ? 0 : 1, frames.size());
            for (int i = 0; i < rows.size(); i++) {
                Row row = rows.get(i);
                Columns frame = frames.get(0);
                assertEquals(row.getLong(0), frame.sequence(i));
                assertArrayEquals(row.isNullAt(1) ? new byte[0] : row.<byte[]>getAs(1), frame.key(i));
                assertEquals(row.isNullAt(2), frame.absent().get(i));
                assertArrayEquals(row.isNullAt(2) ? new byte[0] : row.<byte[]>getAs(2), frame.values().get(i));
                assertEquals(row.getLong(3), frame.timestamp() + (frame.times().length == 0 ? 0 : frame.times()[i]));
            }
            assertTrue(account.json().contains("\"records\":" + rows.size() + ","), account::json);
            assertEquals(isTable || rows.isEmpty(), account.json().contains("\"arrived\":{}"));
        }
    }

    @Test
    void headersAreWrittenAsFramesHaveThem() {
        List<Row> headers = List.of(RowFactory.create("é", new byte[] {0, 1}), RowFactory.create("n".repeat(65_536), new byte[1]),
                RowFactory.create("none", null));
        Columns frame = frames(VALUES, List.of(row(7L, null, null, 1, headers, 7), row(8L, null, null, 1, null, 8)), account()).get(0);
        assertEquals("0200c3a9020000000001" + "04006e6f6e6500000000", HEX.formatHex(frame.headers().get(0)));
        assertEquals("", HEX.formatHex(frame.headers().get(1)));
    }

    @Test
    void wholeRecordsAreTheirVectors() throws IOException {
        JsonNode vectors = new ObjectMapper().readTree(Path.of("../../topology-schema/vectors/records.json").toFile());
        int count = 0;
        for (JsonNode vector : vectors.get("records")) {
            JsonNode record = vector.get("record");
            if (record.get("partition").isNull()) {
                continue; // was not read
            }
            List<Row> headers = new ArrayList<>();
            record.get("headers").forEach(each -> headers.add(RowFactory.create(each.get(0).asText(), bytes(each.get(1)))));
            Row row = RowFactory.create(0L, bytes(record.get("key")), bytes(record.get("value")),
                    record.get("timestamp_ms").asLong(), CollectionConverters.asScala(headers).toSeq(),
                    record.get("partition").asInt(), record.get("offset").asLong());
            RecordSource source = new RecordSource(
                    3, 0, "0/sources/0", "in", record.get("topic").asText(), 1 << 20, true, true, true, true, false);
            Columns frame = frames(source, List.of(row), account()).get(0);
            assertEquals(vector.get("hex").asText(), HEX.formatHex(frame.values().get(0)), vector.get("name").asText());
            assertTrue(frame.headers().isEmpty() && frame.absent().isEmpty());
            count++;
        }
        assertTrue(count > 3);
    }

    private static byte[] bytes(JsonNode hex) {
        return hex.isNull() ? null : HEX.parseHex(hex.asText());
    }

    @Test
    void rowsWithoutANumberAreNumberedByMicroBatch() {
        List<Row> rows = new ArrayList<>();
        for (int i = 0; i <= RecordFrames.FRAME_MESSAGES; i++) {
            rows.add(RowFactory.create(null, null, new byte[] {'x'}, 1L, null));
        }
        List<Columns> frames = frames(FILES, rows, account());
        assertEquals(List.of(RecordFrames.FRAME_MESSAGES, 1), frames.stream().map(Columns::count).toList());
        assertEquals(List.of(5L << 32, (5L << 32) + RecordFrames.FRAME_MESSAGES),
                frames.stream().map(Columns::sequence).toList());
        assertTrue(frames.get(0).keys().isEmpty());
    }

    /** A frame ends before it is too long, whichever part of a record is long. A single record may be longer. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4})
    void framesHaveALimitedSize(long seed) {
        Random random = new Random(seed);
        List<Row> rows = new ArrayList<>();
        RecordSource source = source(false, false, 1 << 22);
        for (long i = 0; i < 40; i++) {
            byte[] large = new byte[random.nextInt(1 << random.nextInt(1, 21))];
            random.nextBytes(large);
            Row header = RowFactory.create("h", random.nextBoolean() ? large : null);
            rows.add(row(i, random.nextBoolean() ? large : null, random.nextBoolean() ? large : null, 1, List.of(header), i));
        }
        List<Columns> frames = frames(source, rows, account());
        assertEquals(rows.size(), frames.stream().mapToInt(Columns::count).sum());
        for (Columns frame : frames) {
            assertTrue(frame.count() == 1 || frame.toBytes().length <= RecordFrames.FRAME_BYTES + 4096);
        }
    }

    private static byte[] drawnOf(Random random, int most) {
        return random.nextInt(3) == 0 ? null : new byte[random.nextInt(most)];
    }

    /** This holds whichever part of a record is large. The other records are in frames, in their order. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void aMessageThatIsTooLargeIsADeadLetterWithItsPlace(long seed) {
        Random random = new Random(seed);
        boolean isWhole = random.nextBoolean();
        boolean isTopic = isWhole || random.nextBoolean();
        RecordSource source = new RecordSource(
                3, 0, "0/sources/0", "in", "clicks", 40, true, isWhole, isTopic, isWhole && random.nextBoolean(), false);
        List<Row> rows = new ArrayList<>();
        for (long offset = 0; offset < 60; offset++) {
            List<Row> headers = random.nextBoolean() ? null : List.of(RowFactory.create("h", drawnOf(random, 30)));
            Row row = row(offset, drawnOf(random, 40), drawnOf(random, 60), 7, headers, offset);
            rows.add(row);
        }
        TaskAccount account = account();
        List<Long> sequences = new ArrayList<>();
        List<Long> refused = new ArrayList<>();
        for (Columns frame : frames(source, rows, account)) {
            if (frame.port() != Frames.DEAD_LETTER_PORT) {
                for (int i = 0; i < frame.count(); i++) {
                    sequences.add(frame.sequence(i));
                }
                continue;
            }
            DeadLetter letter = LetterFrame.parsed(frame.values().get(0));
            long offset = frame.sequence(0);
            Row row = rows.get((int) offset);
            refused.add(offset);
            assertEquals(List.of("R606", "0/sources/0", "in", offset, 7L, 3), List.of(letter.getCode(), letter.getPath(),
                    letter.getStep(), letter.getSequence(), letter.getTimestampMs(), letter.getPort()));
            assertTrue(letter.getError().matches("a (record|message) of \\d+ bytes; at most 40 are taken"), letter::getError);
            assertEquals(isTopic, letter.hasOrigin());
            if (isTopic) {
                byte[] key = row.isNullAt(1) ? new byte[0] : row.getAs(1);
                assertEquals(Origin.newBuilder().setSource("in").setTopic("clicks").setPartition(2).setOffset(offset)
                        .setKey(ByteString.copyFrom(key)).build(), letter.getOrigin());
            }
        }
        for (long offset = 0; offset < 60; offset++) {
            Row row = rows.get((int) offset);
            long bytes = (row.isNullAt(1) ? 0 : row.<byte[]>getAs(1).length)
                    + (row.isNullAt(2) ? 0 : row.<byte[]>getAs(2).length);
            if (bytes > 40) {
                assertTrue(refused.contains(offset), "offset " + offset);
            }
        }
        assertEquals(60, sequences.size() + refused.size());
        assertEquals(sequences.stream().sorted().distinct().toList(), sequences);
        assertTrue(account.json().contains("\"records\":60,"), account::json);
    }

    @Test
    void thePartitionIsKnownWithTheFirstRow() {
        RecordFrames frames = new RecordFrames(TABLE, List.of(row(0L, null, null, 1, null, 9)).iterator(), 0, account(), false, -1);
        assertEquals(-1, frames.partition());
        frames.next();
        assertEquals(2, frames.partition());
    }
}
