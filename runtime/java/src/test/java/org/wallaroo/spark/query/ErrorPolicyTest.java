package org.wallaroo.spark.query;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.FramesTest;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.message.LetterFrame;
import wallaroo.worker.v1.WorkerOuterClass.DeadLetter;

class ErrorPolicyTest {
    private static final int PATHS = 3;

    private static LetterFrame.Letter letter(long sequence, String path) {
        byte[] value = DeadLetter.newBuilder().setSequence(sequence).setPath(path).build().toByteArray();
        return new LetterFrame.Letter(sequence, path, value);
    }

    private static JournalRow.Item item(int port, byte[] frame) {
        return new JournalRow.Item(port, -1, 0, frame);
    }

    @Test
    void theEarliestLetterThatStopsIsFound() {
        Random random = new Random(7);
        for (int round = 0; round < 500; round++) {
            Map<String, Boolean> parts = new HashMap<>();
            for (int path = random.nextInt(PATHS); path < PATHS; path++) {
                parts.put("0/steps/" + path, random.nextBoolean());
            }
            ErrorPolicy policy = new ErrorPolicy(random.nextBoolean(), parts);
            List<JournalRow.Item> items = new ArrayList<>();
            long expected = Long.MAX_VALUE;
            for (int frames = random.nextInt(4); frames > 0; frames--) {
                items.add(item(1, FramesTest.frame(1, 2, 10, new byte[5])));
                List<LetterFrame.Letter> letters = new ArrayList<>();
                for (int count = 1 + random.nextInt(3); count > 0; count--) {
                    LetterFrame.Letter letter = letter(random.nextInt(50), "0/steps/" + random.nextInt(PATHS));
                    letters.add(letter);
                    boolean stops = parts.containsKey(letter.path()) ? parts.get(letter.path()) : policy.fails();
                    expected = stops ? Math.min(expected, letter.sequence()) : expected;
                }
                items.add(item(Frames.DEAD_LETTER_PORT, new LetterFrame(7, letters).toBytes()));
            }
            LetterFrame.Letter found = policy.firstThatStops(items);
            assertEquals(expected, found == null ? Long.MAX_VALUE : found.sequence());
        }
    }

    @Test
    void lettersAreNotReadWhereNoneStops() {
        List<JournalRow.Item> items = List.of(item(Frames.DEAD_LETTER_PORT, new byte[Frames.HEADER_BYTES]));
        assertNull(new ErrorPolicy(false, Map.of("0/steps/0", false)).firstThatStops(items));
        assertThrows(IllegalArgumentException.class, () -> new ErrorPolicy(true, Map.of()).firstThatStops(items));
    }
}
