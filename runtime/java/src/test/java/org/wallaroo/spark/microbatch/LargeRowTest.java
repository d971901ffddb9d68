package org.wallaroo.spark.microbatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.InvalidProtocolBufferException;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.wallaroo.spark.query.RecordSource;
import wallaroo.worker.v1.WorkerOuterClass.DeadLetter;

class LargeRowTest {
    private static final RecordSource SOURCE =
            new RecordSource(3, 0, "0/sources/0", "in", "clicks", 1, true, false, true, false, false);

    private static String preview(byte[] value) throws InvalidProtocolBufferException {
        return DeadLetter.parseFrom(LargeRow.letter(SOURCE, 1, 2, value.length, value, null).value()).getPreview();
    }

    /** The preview cuts no character of one to four bytes, and adds nothing. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4})
    void thePreviewIsTheWholeCharactersOfTheStart(long seed) throws InvalidProtocolBufferException {
        Random random = new Random(seed);
        String[] characters = {"a", "é", "€", "😀"};
        for (int round = 0; round < 500; round++) {
            StringBuilder drawn = new StringBuilder();
            for (int count = 1 + random.nextInt(60); count > 0; count--) {
                drawn.append(characters[random.nextInt(4)]);
            }
            String text = drawn.toString();
            String preview = preview(text.getBytes(StandardCharsets.UTF_8));
            assertTrue(text.startsWith(preview), preview);
            int bytes = preview.getBytes(StandardCharsets.UTF_8).length;
            assertTrue(preview.equals(text) ? bytes <= 80 : 77 <= bytes && bytes <= 80, bytes + " bytes");
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 79, 80, 81, 500})
    void bytesThatAreNoTextAreShownToo(int bytes) throws InvalidProtocolBufferException {
        byte[] value = new byte[bytes];
        java.util.Arrays.fill(value, (byte) 0x80);
        assertEquals("\ufffd".repeat(bytes > 80 ? 77 : bytes), preview(value));
    }
}
