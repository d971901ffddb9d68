package org.wallaroo.spark.message;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class ColumnsTest {
    private static final Path VECTORS = Path.of("../../topology-schema/vectors/frames.json");
    private static final HexFormat HEX = HexFormat.of();

    /** A test vector of frames from {@code topology-schema}. */
    record Vector(String name, JsonNode fields) {
        byte[] frame() {
            return HEX.parseHex(fields.get("hex").asText());
        }

        List<JsonNode> list(String field) {
            return fields.has(field) ? StreamSupport.stream(fields.get(field).spliterator(), false).toList() : List.of();
        }

        @Override
        public String toString() {
            return name;
        }
    }

    static Stream<Vector> vectors() throws IOException {
        JsonNode valid = new ObjectMapper().readTree(VECTORS.toFile()).get("valid");
        return StreamSupport.stream(valid.spliterator(), false).map(each -> new Vector(each.get("name").asText(), each));
    }

    static Stream<Vector> plainVectors() throws IOException {
        return vectors().filter(each -> each.fields.get("encoding").asInt() != Frames.FRAMED);
    }

    static Stream<Vector> framedVectors() throws IOException {
        return vectors().filter(each -> each.fields.get("encoding").asInt() == Frames.FRAMED);
    }

    @ParameterizedTest
    @MethodSource("plainVectors")
    void vectorsAreReadAndWritten(Vector vector) {
        Columns read = Columns.read(vector.frame());
        assertEquals(vector.fields.get("port").asInt(), read.port());
        assertEquals(vector.fields.get("count").asInt(), read.count());
        assertEquals(vector.fields.get("timestamp_ms").asLong(), read.timestamp());
        assertEquals(vector.fields.get("sequence").bigIntegerValue().longValue(), read.sequence());
        assertEquals(vector.list("keys").stream().map(JsonNode::asText).toList(),
                read.keys().stream().map(HEX::formatHex).toList());
        List<String> values = new ArrayList<>();
        for (int i = 0; i < read.count(); i++) {
            values.add(read.absent().get(i) ? null : HEX.formatHex(read.values().get(i)));
            if (vector.fields.has("sequences")) {
                assertEquals(vector.fields.get("sequences").get(i).bigIntegerValue().longValue(), read.sequence(i));
            }
            if (vector.fields.has("timestamps")) {
                assertEquals(vector.fields.get("timestamps").get(i).asLong(), read.timestamp() + read.times()[i]);
            }
            if (vector.fields.has("key_indexes")) {
                String key = vector.fields.get("keys").get(vector.fields.get("key_indexes").get(i).asInt()).asText();
                assertEquals(key, HEX.formatHex(read.key(i)));
            }
        }
        assertEquals(vector.list("values").stream().map(each -> each.isNull() ? null : each.asText()).toList(), values);
        if (vector.fields.get("narrow").asBoolean()) {
            assertEquals(vector.fields.get("hex").asText(), HEX.formatHex(read.toBytes()));
        }
    }

    @ParameterizedTest
    @MethodSource("framedVectors")
    void framedValuesAreRefused(Vector vector) {
        assertThrows(IllegalArgumentException.class, () -> Columns.read(vector.frame()));
    }

    /** A wrong body is refused also if header and checksum are right, and a wrong length in it allocates no memory. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void changedBodiesAreReadOrRefused(long seed) throws IOException {
        Random random = new Random(seed);
        for (Vector vector : plainVectors().toList()) {
            byte[] changed = vector.frame();
            for (int round = 0; round < 200 && changed.length > Frames.HEADER_BYTES; round++) {
                changed[Frames.HEADER_BYTES + random.nextInt(changed.length - Frames.HEADER_BYTES)] = (byte) random.nextInt();
                try {
                    Columns read = Columns.read(changed);
                    for (int i = 0; i < read.count(); i++) {
                        read.key(i);
                    }
                } catch (IllegalArgumentException error) {
                    changed = vector.frame();
                }
            }
        }
    }

    @Test
    void aBodyThatIsTooLongIsRefused() {
        FrameWriter frame = new FrameWriter(1, false);
        byte[] value = new byte[Frames.MAX_BODY_BYTES / 2];
        for (int i = 0; i < 2; i++) {
            frame.add(i, 0, null, new byte[0], value);
        }
        assertThrows(IllegalArgumentException.class, frame::toBytes);
    }

    private static byte[] drawnBytes(Random random) {
        byte[] drawn = new byte[random.nextInt(3)];
        random.nextBytes(drawn);
        return random.nextInt(4) == 0 ? null : drawn;
    }

    /** A drawn message. */
    private record Drawn(long sequence, long time, byte[] key, byte[] headers, byte[] value) {}

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void whatIsWrittenIsRead(long seed) {
        Random random = new Random(seed);
        for (int round = 0; round < 200; round++) {
            boolean hasKeys = random.nextBoolean();
            boolean isDense = random.nextBoolean();
            int widest = random.nextInt(1, 42);
            FrameWriter writer = new FrameWriter(random.nextInt(1 << 16), hasKeys);
            List<Drawn> messages = new ArrayList<>();
            long sequence = random.nextLong(1L << 40);
            for (int count = 1 + random.nextInt(40); count > 0; count--) {
                byte[] headers = random.nextInt(9) == 0 ? new byte[] {1, 0, 'h', 0, 0, 0, 0} : new byte[0];
                Drawn drawn = new Drawn(sequence, random.nextLong(1L << widest) - 9, drawnBytes(random), headers,
                        drawnBytes(random));
                sequence += isDense ? 1 : random.nextInt(1 << random.nextInt(20));
                messages.add(drawn);
                writer.add(drawn.sequence, drawn.time, drawn.key, drawn.headers, drawn.value);
            }
            byte[] frame = writer.toBytes();
            assertEquals("", Frames.verify(frame, -1).fault());
            Columns read = Columns.read(frame);
            assertEquals(messages.size(), read.count());
            for (int i = 0; i < messages.size(); i++) {
                Drawn drawn = messages.get(i);
                assertEquals(drawn.sequence, read.sequence(i));
                assertEquals(drawn.time, read.timestamp() + (read.times().length == 0 ? 0 : read.times()[i]));
                assertArrayEquals(hasKeys && drawn.key != null ? drawn.key : new byte[0], read.key(i));
                assertArrayEquals(drawn.headers, read.headers().isEmpty() ? new byte[0] : read.headers().get(i));
                assertEquals(drawn.value == null, read.absent().get(i));
                assertArrayEquals(drawn.value == null ? new byte[0] : drawn.value, read.values().get(i));
            }
        }
    }
}
