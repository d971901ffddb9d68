package org.wallaroo.spark.stage;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.wallaroo.spark.message.LetterFrame;

/**
 * The dead letters of a bucket call that have been emitted, so that a repetition of the call emits no letter twice.
 *
 * <p>A call that is repeated carefully, or with a message skipped, may have more dead letters than before, also in
 * parts whose outputs were emitted. Only these new letters are emitted when the call is repeated: the egress counts
 * letters in a stream by bucket and sequence, and must not get a letter twice.
 */
final class EmittedLetters {
    private final Map<Identity, Integer> left = new HashMap<>();
    private final Map<Identity, Integer> came = new HashMap<>(); // number of equal letters since the call began again

    private record Identity(long sequence, String path) {}

    /** Records that the call begins again. */
    void restart() {
        came.clear();
    }

    /**
     * Returns a frame with those letters that were not emitted before, and counts them as emitted; null if there are
     * none.
     *
     * @param frame of the port of dead letters, whole and undamaged
     * @throws IllegalArgumentException if the frame does not contain dead letters
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
