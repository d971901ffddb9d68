package org.wallaroo.spark.message;

import java.util.List;

/**
 * A row from one level to the next: frames, or a word to the levels.
 *
 * @param kind what it is
 * @param place after all of the journal that it and those before it are of
 * @param items the frames, each with where it goes
 * @param arrivals of its messages
 */
public record JournalRow(Kind kind, Place place, List<Item> items, Arrivals arrivals) {
    public JournalRow(Kind kind, Place place, List<Item> items) {
        this(kind, place, items, Arrivals.NONE);
    }

    /** The kind of a row. */
    public enum Kind {
        /** Frames. */
        FRAMES,
        /** The journal has nothing more for now: answers that are under way are awaited. */
        IDLE,
        /** Open calls end now: their changes can be stored. */
        FLUSH
    }

    /**
     * A place in the journal.
     *
     * @param offset of it
     * @param messages before it
     * @param sequence that follows; -1: nothing was read yet
     */
    public record Place(long offset, long messages, long sequence) {}

    /**
     * A frame.
     *
     * @param port of the exit that it left
     * @param bucket that it goes to; -1: none
     * @param origin which stage gave it, and for which bucket: a number of its own for each; -1: the first stage
     * @param frame one whole frame; in rows of the journal one or more
     */
    public record Item(int port, int bucket, int origin, byte[] frame) {}

    /**
     * Returns a row without frames.
     *
     * @param kind what it says
     * @param place in the journal
     */
    public static JournalRow of(Kind kind, Place place) {
        return new JournalRow(kind, place, List.of());
    }
}
