package org.wallaroo.spark.message;

import com.google.protobuf.InvalidProtocolBufferException;
import java.util.ArrayList;
import java.util.List;
import wallaroo.worker.v1.WorkerOuterClass.DeadLetter;

/**
 * A frame of dead letters.
 *
 * @param timestamp of the frame
 * @param letters in the order of the frame
 */
public record LetterFrame(long timestamp, List<Letter> letters) {
    /**
     * A dead letter.
     *
     * @param sequence of the source message
     * @param path of the source, step or sink that failed
     * @param value a serialized {@code DeadLetter}
     */
    public record Letter(long sequence, String path, byte[] value) {}

    /**
     * Reads a frame whose header and checksum are right.
     *
     * @throws IllegalArgumentException if its columns contradict each other, or a value is no dead letter
     */
    public static LetterFrame read(byte[] frame) {
        Columns columns = Columns.read(frame);
        List<Letter> letters = new ArrayList<>();
        for (int i = 0; i < columns.count(); i++) {
            byte[] value = columns.values().get(i);
            letters.add(new Letter(columns.sequence(i), parsed(value).getPath(), value));
        }
        return new LetterFrame(columns.timestamp(), letters);
    }

    /**
     * Reads a dead letter from its serialized form, the value of a message in the frame.
     *
     * @throws IllegalArgumentException if the value is no dead letter
     */
    public static DeadLetter parsed(byte[] value) {
        try {
            return DeadLetter.parseFrom(value);
        } catch (InvalidProtocolBufferException error) {
            throw new IllegalArgumentException("a value is no DeadLetter: " + error.getMessage(), error);
        }
    }

    /** Returns the letters as one frame. */
    public byte[] toBytes() {
        FrameWriter frame = new FrameWriter(Frames.DEAD_LETTER_PORT, false);
        letters.forEach(letter -> frame.add(letter.sequence(), timestamp, null, new byte[0], letter.value()));
        return frame.toBytes();
    }
}
