package org.wallaroo.spark.message;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;

import com.google.protobuf.ByteString;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.junit.jupiter.api.Test;
import wallaroo.record.v1.RecordOuterClass.Record;
import wallaroo.worker.v1.WorkerOuterClass.DeadLetter;
import wallaroo.worker.v1.WorkerOuterClass.Origin;

class RecordOriginsTest {
    private static final String SOURCE = "0/sources/0";
    private static final Origins.Topic CLICKS = new Origins.Topic("clicks", "web");

    private static LetterFrame.Letter letter(long sequence, String path, byte[] input) {
        byte[] value = DeadLetter.newBuilder()
                .setSequence(sequence).setPath(path).setInput(ByteString.copyFrom(input)).build().toByteArray();
        return new LetterFrame.Letter(sequence, path, value);
    }

    private static List<DeadLetter> put(Origins origins, List<LetterFrame.Letter> letters, byte[] data) throws Exception {
        JournalRow.Item other = new JournalRow.Item(1, 2, 3, new byte[] {7});
        byte[] frame = new LetterFrame(9, letters).toBytes();
        JournalRow.Item dead = new JournalRow.Item(Frames.DEAD_LETTER_PORT, -1, 4, frame);
        List<JournalRow.Item> found = origins.addTo(List.of(other, dead), data);
        assertSame(other, found.get(0));
        assertEquals(4, found.get(1).origin());
        LetterFrame read = LetterFrame.read(found.get(1).frame());
        assertEquals(9, read.timestamp());
        List<DeadLetter> given = new ArrayList<>();
        for (LetterFrame.Letter letter : read.letters()) {
            given.add(DeadLetter.parseFrom(letter.value()));
        }
        return given;
    }

    private static Origin origin(int partition, long offset, String key) {
        return Origin.newBuilder().setSource("clicks").setTopic("web").setPartition(partition).setOffset(offset)
                .setKey(ByteString.copyFromUtf8(key.substring(0, Math.min(200, key.length())))).build();
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void lettersHaveOffsetAndKeyOfTheirRecord(long seed) throws Exception {
        Random random = new Random(seed);
        for (int round = 0; round < 100; round++) {
            int partition = random.nextInt(9);
            FrameWriter frame = new FrameWriter(3, true);
            List<LetterFrame.Letter> letters = new ArrayList<>();
            List<Origin> expected = new ArrayList<>();
            long offset = random.nextLong(1L << 40);
            for (int count = 1 + random.nextInt(20); count > 0; count--) {
                String key = List.of("", "ann", "b".repeat(300)).get(random.nextInt(3));
                frame.add(offset, 5, key.getBytes(StandardCharsets.UTF_8), new byte[0], null);
                for (int fails = random.nextInt(3); fails > 0; fails--) {
                    letters.add(letter(offset, random.nextBoolean() ? SOURCE : "0/steps/0", new byte[] {'x'}));
                    expected.add(origin(partition, offset, key));
                }
                offset += 1 + random.nextInt(4); // compaction leaves gaps
            }
            letters.add(letter(offset, "0/steps/1", new byte[0])); // of a record that is not in this frame
            expected.add(origin(partition, offset, ""));
            Origins origins = new RecordOrigins(CLICKS, SOURCE, false, () -> partition);
            List<DeadLetter> found = put(origins, letters, frame.toBytes());
            assertEquals(expected, found.stream().map(DeadLetter::getOrigin).toList());
        }
    }

    @Test
    void lettersOfATableHaveTheRecordThatItsDecoderGot() throws Exception {
        byte[] record = Record.newBuilder()
                .setTopic("web").setPartition(4).setOffset(1L << 41).setKey(ByteString.copyFromUtf8("ann")).build().toByteArray();
        List<LetterFrame.Letter> letters = List.of(letter(0, SOURCE, record), letter(0, "0/steps/0", record),
                letter(0, SOURCE, new byte[] {-1}), letter(0, SOURCE, new byte[0]));
        List<DeadLetter> found = put(new RecordOrigins(CLICKS, SOURCE, true, () -> 4), letters, new byte[0]);
        assertEquals(origin(4, 1L << 41, "ann"), found.get(0).getOrigin());
        found.subList(1, 4).forEach(letter -> assertFalse(letter.hasOrigin(), "nothing is known"));
    }

    @Test
    void whatSparkReadsOfNoTopicHasNone() {
        List<JournalRow.Item> given = List.of(new JournalRow.Item(Frames.DEAD_LETTER_PORT, -1, 0, new byte[3]));
        assertSame(given, Origins.NONE.addTo(given, new byte[3]));
    }
}
