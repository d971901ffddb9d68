package org.wallaroo.spark.stage;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.FramesTest;
import org.wallaroo.spark.message.LetterFrame;
import wallaroo.worker.v1.WorkerOuterClass.DeadLetter;

class EmittedLettersTest {
    private static LetterFrame.Letter letter(long sequence, String path) {
        byte[] value = DeadLetter.newBuilder().setSequence(sequence).setPath(path).build().toByteArray();
        return new LetterFrame.Letter(sequence, path, value);
    }

    private static String nameOf(LetterFrame.Letter letter) {
        return letter.sequence() + " " + letter.path();
    }

    /** Passes dead letters on in frames of drawn sizes. Returns the names of those that are emitted. */
    private static List<String> give(EmittedLetters left, List<LetterFrame.Letter> letters, Random random) {
        List<String> found = new ArrayList<>();
        for (int at = 0; at < letters.size();) {
            int end = Math.min(letters.size(), at + 1 + random.nextInt(4));
            byte[] frame = left.take(new LetterFrame(7, letters.subList(at, end)).toBytes());
            if (frame != null) {
                assertEquals(frame.length, Frames.verify(frame, -1).end());
                LetterFrame.read(frame).letters().forEach(letter -> found.add(nameOf(letter)));
            }
            at = end;
        }
        return found;
    }

    @Test
    void aLetterLeavesAsOftenAsTheCallHadItAtMost() {
        Random random = new Random(7);
        for (int round = 0; round < 200; round++) {
            EmittedLetters left = new EmittedLetters();
            Map<String, Integer> most = new HashMap<>();
            Map<String, Integer> found = new HashMap<>();
            for (int attempt = 0; attempt < 3; attempt++) {
                List<LetterFrame.Letter> letters = new ArrayList<>();
                Map<String, Integer> had = new HashMap<>();
                for (int i = random.nextInt(12); i > 0; i--) {
                    long sequence = random.nextBoolean() ? random.nextInt(3) : 1L << 16 + random.nextInt(30);
                    LetterFrame.Letter letter = letter(sequence, "0/steps/" + random.nextInt(2));
                    letters.add(letter);
                    had.merge(nameOf(letter), 1, Integer::sum);
                }
                left.restart();
                give(left, letters, random).forEach(name -> found.merge(name, 1, Integer::sum));
                had.forEach((name, count) -> most.merge(name, count, Math::max));
                assertEquals(most, found);
            }
        }
    }

    @Test
    void aFrameHasTheBytesThatPythonWrites() {
        byte[] frame = Base64.getDecoder().decode("V0ZSMQIA//8DAAAARwAAACwBAAAAAAAABQAAAAAAAAAAAAAAezZ0JgKQAQAAAAABFBQUCgRDNTAxEgkwL3N0"
                + "ZXBzLzAwvAUKBEM1MDESCTAvc3RlcHMvMTCsAgoEQzUwMRIJMC9zdGVwcy8yMKwC");
        LetterFrame read = LetterFrame.read(frame);
        assertEquals(List.of("700 0/steps/0", "300 0/steps/1", "300 0/steps/2"),
                read.letters().stream().map(EmittedLettersTest::nameOf).toList());
        assertArrayEquals(frame, read.toBytes());
    }

    @Test
    void whatIsNoDeadLetterIsRefused() {
        byte[] whole = new LetterFrame(7, List.of(letter(3, "0/steps/0"))).toBytes();
        for (int at = Frames.HEADER_BYTES; at < whole.length; at++) {
            byte[] cut = java.util.Arrays.copyOf(whole, at);
            assertThrows(IllegalArgumentException.class, () -> LetterFrame.read(cut), "cut at " + at);
        }
        byte[] none = FramesTest.frame(Frames.DEAD_LETTER_PORT, 1, 0, new byte[] {1, 1, 99});
        assertThrows(IllegalArgumentException.class, () -> LetterFrame.read(none));
    }
}
