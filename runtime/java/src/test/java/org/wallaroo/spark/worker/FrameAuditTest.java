package org.wallaroo.spark.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.InvalidProtocolBufferException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.wallaroo.spark.message.Columns;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.FramesTest;
import org.wallaroo.spark.message.Keys;
import org.wallaroo.spark.query.OperatorFailure;
import wallaroo.worker.v1.WorkerOuterClass.DeadLetter;
import wallaroo.worker.v1.WorkerOuterClass.Output;

class FrameAuditTest {
    private static Output keyed(int bucket, long sequence, List<byte[]> keys) {
        long[] indexes = LongStream.range(0, keys.size()).toArray();
        byte[] frame = new Columns(1, 16, sequence, 0, keys, indexes, new long[0], new long[0], List.of(), new BitSet(),
                Collections.nCopies(keys.size(), new byte[0])).toBytes();
        return Output.newBuilder().setPort(1).setBucket(bucket).setFrame(FakeWorker.bytes(frame)).build();
    }

    private static List<byte[]> keys(Random random, int count) {
        return random.ints().distinct().limit(count).mapToObj(number -> ("é" + number).getBytes(StandardCharsets.UTF_8)).toList();
    }

    @Test
    void aKeyInTheBucketOfAnotherOneIsFound() {
        Random random = new Random(5);
        Audit audit = new Audit(AuditTest.SPLIT, "main");
        for (int round = 0; round < 300; round++) {
            List<byte[]> all = keys(random, 1 + random.nextInt(150));
            int right = Keys.bucketOf(all.get(0), AuditTest.SPLIT.getBucketCount());
            List<byte[]> mine = new ArrayList<>(all);
            mine.removeIf(key -> Keys.bucketOf(key, AuditTest.SPLIT.getBucketCount()) != right);
            long sequence = random.nextLong() >>> 20;
            audit.output(keyed(right, sequence, mine));
            List<byte[]> others = new ArrayList<>(all);
            others.removeAll(mine);
            if (!others.isEmpty() && mine.size() < 64) {
                mine.add(random.nextInt(mine.size() + 1), others.get(0));
                String text = "field bucket: " + right + "; the key \"" + new String(others.get(0), StandardCharsets.UTF_8)
                        + "\" belongs to " + Keys.bucketOf(others.get(0), AuditTest.SPLIT.getBucketCount());
                String said = AuditTest.refusedBy(() -> audit.output(keyed(right, sequence, mine))).getMessage();
                assertTrue(said.substring(0, said.indexOf('\n')).endsWith(text), said);
            }
        }
    }

    @Test
    void ofManyKeysEachIsCheckedInSomeFrame() {
        Random random = new Random(5);
        List<byte[]> keys = new ArrayList<>(keys(random, 4000));
        keys.removeIf(key -> Keys.bucketOf(key, AuditTest.SPLIT.getBucketCount()) != 2);
        byte[] wrong = keys(random, 100).stream().filter(key -> Keys.bucketOf(key, AuditTest.SPLIT.getBucketCount()) == 1).findFirst().get();
        keys.set(700, wrong);
        Audit audit = new Audit(AuditTest.SPLIT, "main");
        int found = 0;
        for (int sequence = 0; sequence < keys.size(); sequence++) {
            try {
                audit.output(keyed(2, sequence, keys));
            } catch (OperatorFailure failure) {
                found++;
            }
        }
        assertEquals(64, found);
    }

    @Test
    void aDeadLetterThatIsNoneIsRefused() {
        Random random = new Random(5);
        Audit audit = new Audit(AuditTest.SPLIT, "main");
        for (int round = 0; round < 2000; round++) {
            byte[] value = new byte[random.nextInt(12)];
            random.nextBytes(value);
            byte[] frame = new Columns(Frames.DEAD_LETTER_PORT, 16, 0, 0, List.of(), new long[0], new long[0],
                    new long[0], List.of(), new BitSet(), List.of(value)).toBytes();
            Output output = Output.newBuilder().setPort(Frames.DEAD_LETTER_PORT).setBucket(-1)
                    .setFrame(FakeWorker.bytes(frame)).build();
            try {
                DeadLetter.parseFrom(value);
            } catch (InvalidProtocolBufferException error) {
                String said = AuditTest.refusedBy(() -> audit.output(output)).getMessage();
                assertTrue(said.contains("field frame: port 65535; each value is a DeadLetter"), said);
                continue;
            }
            audit.output(output);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "right, ''",
        "bucket 1, 'W410 field bucket: 1; the key'",
        "bucket -1, 'W410 field bucket: -1; port 1 has 0 to 3'",
        "bucket 4, 'W410 field bucket: 4; port 1 has 0 to 3'",
        "bucket of letters, 'W410 field bucket: 1; port 65535 has -1'",
        "no keys, 'W410 field frame: flags 0; port 1 has keys'",
        "two frames, 'W410 field frame: 102 bytes; one frame, of 51 bytes'",
        "cut, W410 the frame is not whole",
        "empty, W410 the frame is not whole",
        "framed, 'W410 field frame: encoding 1'",
        "no letter, W410 each value is a DeadLetter",
    })
    void anOutputIsOneFrameOfItsPort(String fault, String text) {
        byte[] right = FramesTest.keyed(1, 1);
        right = FramesTest.withEncoding(right, fault.equals("framed") ? 1 : 16);
        byte[] frame = switch (fault) {
            case "no keys" -> FramesTest.frame(1, 1, 0, new byte[2]);
            case "two frames" -> FramesTest.joined(right, right);
            case "cut" -> Arrays.copyOf(right, right.length - 1);
            case "empty" -> new byte[0];
            case "no letter" -> FramesTest.frame(Frames.DEAD_LETTER_PORT, 1, 0, new byte[] {1, 1, 99});
            default -> right;
        };
        int bucket = switch (fault) {
            case "bucket -1", "no letter" -> -1;
            case "bucket 4" -> 4;
            case "bucket 1", "bucket of letters" -> 1;
            default -> 3;
        };
        int port = fault.endsWith("letters") || fault.endsWith("letter") ? Frames.DEAD_LETTER_PORT : 1;
        Output output = Output.newBuilder().setPort(port).setBucket(bucket).setFrame(FakeWorker.bytes(frame)).build();
        Audit audit = new Audit(AuditTest.SPLIT, "main");
        if (text.isEmpty()) {
            audit.output(output);
            return;
        }
        String message = AuditTest.refusedBy(() -> audit.output(output)).getMessage();
        assertTrue(message.startsWith(text.substring(0, 4)), message);
        assertTrue(message.contains(text.substring(5)), message);
    }
}
