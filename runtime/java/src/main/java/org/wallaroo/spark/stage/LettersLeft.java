package org.wallaroo.spark.stage;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.wallaroo.spark.message.LetterFrame;

/**
 * Which dead letters of a call have left.
 *
 * <p>A call that is made again carefully, or with a message skipped, may have dead letters that it did not have before,
 * also in parts whose outputs have left: those that are new leave then. The egress counts letters in a stream by bucket
 * and sequence, so none may be given to it twice.
 */
final class LettersLeft {
    private final Map<Identity, Integer> left = new HashMap<>();
    private final Map<Identity, Integer> came = new HashMap<>(); // since the call was begun

    private record Identity(long sequence, String path) {}

    /** Takes note that the call begins again. */
    void restart() {
        came.clear();
    }

    /**
     * Returns a frame of those dead letters that have not left; they leave now. Null: all have.
     *
     * @param frame of the port of dead letters, whole and undamaged
     * @throws IllegalArgumentException it does not hold dead letters
     */
    byte[] take(byte[] frame) {
        LetterFrame read = LetterFrame.read(frame);
        List<LetterFrame.Letter> found = read.letters().stream().filter(this::isNew).toList();
        if (found.isEmpty()) {
            return null;
        }
        return found.size() == read.letters().size() ? frame : new LetterFrame(read.timestamp(), found).toBytes();
    }

    private boolean isNew(LetterFrame.Letter letter) {
        Identity identity = new Identity(letter.sequence(), letter.path());
        int number = came.merge(identity, 1, Integer::sum);
        if (number <= left.getOrDefault(identity, 0)) {
            return false;
        }
        left.put(identity, number);
        return true;
    }
}
