package org.wallaroo.spark.message;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.junit.jupiter.api.Test;
import wallaroo.worker.v1.WorkerOuterClass.DeadLetter;
import wallaroo.worker.v1.WorkerOuterClass.Origin;

class OriginsTest {
    private static final JournalOrigins ORIGINS = new JournalOrigins(Map.of(
            3, new Origins.Topic("clicks", "web-clicks"), 4, new Origins.Topic("orders", "web-orders")));

    /** A drawn record of a topic. */
    private record Drawn(int partition, long offset, String key) {}

    private static List<Drawn> draw(Random random) {
        List<Drawn> found = new ArrayList<>();
        long[] offsets = {random.nextLong(1L << 40), random.nextInt(3), random.nextInt(3)};
        int partition = 0;
        for (int count = 1 + random.nextInt(20); count > 0; count--) {
            partition = random.nextInt(3) == 0 ? random.nextInt(offsets.length) : partition;
            offsets[partition] += random.nextInt(4) == 0 ? 1 + random.nextInt(5) : 1; // compaction leaves gaps
            found.add(new Drawn(partition, offsets[partition], List.of("", "a", "b".repeat(250)).get(random.nextInt(3))));
        }
        return found;
    }

    /** Returns the headers of each message that the gateway writes for these records. */
    private static List<byte[]> headers(List<Drawn> records) {
        List<byte[]> found = new ArrayList<>();
        for (int i = 0; i < records.size(); i++) {
            Drawn record = records.get(i);
            boolean goesOn = i + 1 < records.size() && records.get(i + 1).partition == record.partition
                    && records.get(i + 1).offset == record.offset + 1;
            ByteBuffer header = ByteBuffer.allocate(100).order(ByteOrder.LITTLE_ENDIAN);
            if (i % 2 == 0) {
                header.putShort((short) 3).put("via".getBytes(StandardCharsets.UTF_8)).putInt(0);
            }
            if (!goesOn) {
                header.putShort((short) 14).put("wallaroo.point".getBytes(StandardCharsets.UTF_8)).putInt(16);
                header.order(ByteOrder.BIG_ENDIAN).putLong(record.partition).putLong(record.offset + 1);
            }
            found.add(java.util.Arrays.copyOf(header.array(), header.position()));
        }
        return found;
    }

    private static byte[] frame(int port, long sequence, List<Drawn> records) {
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        body.writeBytes(ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(records.size()).array());
        body.write(1);
        records.forEach(record -> body.write(record.key.length()));
        records.forEach(record -> body.writeBytes(record.key.getBytes(StandardCharsets.UTF_8)));
        body.write(1);
        for (int i = 0; i < records.size(); i++) {
            body.write(i);
        }
        List<byte[]> headers = headers(records);
        body.write(1);
        headers.forEach(header -> body.write(header.length));
        headers.forEach(body::writeBytes);
        body.write(1);
        records.forEach(record -> body.write(0));
        return FramesTest.frame(9, port, records.size(), sequence, body.toByteArray());
    }

    private static LetterFrame.Letter letter(long sequence, String path) {
        byte[] value = DeadLetter.newBuilder().setSequence(sequence).setPath(path).setError("no").build().toByteArray();
        return new LetterFrame.Letter(sequence, path, value);
    }

    private static Origin origin(int port, Drawn record) {
        Origins.Topic topic = ORIGINS.topics().get(port);
        return Origin.newBuilder()
                .setSource(topic.source()).setTopic(topic.name()).setPartition(record.partition).setOffset(record.offset)
                .setKey(com.google.protobuf.ByteString.copyFromUtf8(record.key.substring(0, Math.min(200, record.key.length()))))
                .build();
    }

    private static JournalRow.Item item(int port, byte[] frame) {
        return new JournalRow.Item(port, -1, 7, frame);
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void lettersOfDecodersAndStepsGetTheirRecord(long seed) throws Exception {
        Random random = new Random(seed);
        for (int round = 0; round < 100; round++) {
            long sequence = random.nextInt(1000);
            List<byte[]> data = new ArrayList<>();
            List<LetterFrame.Letter> letters = new ArrayList<>();
            List<DeadLetter> expected = new ArrayList<>();
            for (int frames = 1 + random.nextInt(3); frames > 0; frames--) {
                int port = 3 + random.nextInt(3); // that of 5 is no topic's
                List<Drawn> records = draw(random);
                data.add(frame(port, sequence, records));
                for (int i = 0; i < records.size(); i++) {
                    for (int count = random.nextInt(3); count > 0; count--) {
                        LetterFrame.Letter letter = letter(sequence + i, random.nextBoolean() ? "0/sources/0" : "0/steps/1");
                        letters.add(letter);
                        DeadLetter.Builder wanted = DeadLetter.parseFrom(letter.value()).toBuilder();
                        expected.add(port == 5 ? wanted.build() : wanted.setOrigin(origin(port, records.get(i))).build());
                    }
                }
                sequence += records.size();
            }
            JournalRow.Item other = item(1, FramesTest.frame(1, 2, 10, new byte[5]));
            byte[] dead = new LetterFrame(70, letters).toBytes();
            List<JournalRow.Item> found = ORIGINS.addTo(List.of(other, item(Frames.DEAD_LETTER_PORT, dead)), Frames.joined(data));
            assertSame(other, found.get(0));
            assertEquals(7, found.get(1).origin());
            LetterFrame read = LetterFrame.read(found.get(1).frame());
            List<DeadLetter> got = new ArrayList<>();
            for (LetterFrame.Letter letter : read.letters()) {
                got.add(DeadLetter.parseFrom(letter.value()));
            }
            assertEquals(expected, got);
            assertEquals(letters.isEmpty() ? 0 : 70, read.timestamp());
        }
    }

    @Test
    void aFrameOfTheGatewayIsRead() throws Exception {
        byte[] frame = Base64.getDecoder().decode("V0ZSMQ0AAwAEAAAAegAAACgAAAAAAAAABQAAAAAAAAAAAAAAg1h29AMAAAABAwMAYW5uYm9iAQABAgIBAQIAAQEADC"
                + "QkAwB2aWEDAAAAd2ViDgB3YWxsYXJvby5wb2ludBAAAAAAAAAAAAAAAgAAAAAAAAAKDgB3YWxsYXJvby5wb2ludBAA"
                + "AAAAAAAAAAAAAAAAAQAAAAABAQEBAQF2dnZ2");
        byte[] dead = new LetterFrame(0, List.of(letter(41, ""), letter(43, ""))).toBytes();
        List<JournalRow.Item> found = ORIGINS.addTo(List.of(item(Frames.DEAD_LETTER_PORT, dead)), frame);
        List<String> said = new ArrayList<>();
        for (LetterFrame.Letter letter : LetterFrame.read(found.get(0).frame()).letters()) {
            Origin origin = DeadLetter.parseFrom(letter.value()).getOrigin();
            said.add(origin.getPartition() + " " + origin.getOffset() + " " + origin.getKey().toStringUtf8());
        }
        assertEquals(List.of("2 8 bob", "0 1099511627776 "), said);
    }

    @Test
    void withoutLettersOrTopicsNothingIsRead() {
        List<JournalRow.Item> given = List.of(item(1, new byte[Frames.HEADER_BYTES]));
        assertSame(given, ORIGINS.addTo(given, new byte[3]));
        List<JournalRow.Item> letters = List.of(item(Frames.DEAD_LETTER_PORT, new byte[Frames.HEADER_BYTES]));
        assertSame(letters, new JournalOrigins(Map.of()).addTo(letters, new byte[3]));
    }
}
