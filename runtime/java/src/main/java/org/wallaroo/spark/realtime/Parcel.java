package org.wallaroo.spark.realtime;

import java.util.List;

/**
 * What goes from one level to the next: frames, or a word to the levels.
 *
 * @param kind what it is
 * @param place after all of the journal that it and those before it are of
 * @param items the frames, each with where it goes
 * @param arrivals of its messages
 */
record Parcel(Kind kind, Place place, List<Item> items, Arrivals arrivals) {
    Parcel(Kind kind, Place place, List<Item> items) {
        this(kind, place, items, Arrivals.NONE);
    }

    /** What a parcel is. */
    enum Kind {
        /** Frames. */
        FRAMES,
        /** The journal has nothing more for now: answers that are under way are awaited. */
        IDLE,
        /** Open calls end now: what they have changed can be stored. */
        FLUSH
    }

    /**
     * A place in the journal.
     *
     * @param offset of it
     * @param messages before it
     * @param sequence that follows; -1: nothing was read yet
     */
    record Place(long offset, long messages, long sequence) {}

    /**
     * A frame.
     *
     * @param port of the exit that it left
     * @param bucket that it goes to; -1: none
     * @param origin which stage gave it, and for which bucket: a number of its own for each; -1: the first stage
     * @param frame one whole frame; in parcels of the journal one or more
     */
    record Item(int port, int bucket, int origin, byte[] frame) {}

    /**
     * Returns a parcel without frames.
     *
     * @param kind what it says
     * @param place in the journal
     */
    static Parcel of(Kind kind, Place place) {
        return new Parcel(kind, place, List.of());
    }
}
