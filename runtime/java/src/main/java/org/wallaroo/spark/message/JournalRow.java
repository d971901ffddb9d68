package org.wallaroo.spark.message;

import java.util.List;

/**
 * A row that one level of a plan (the stages between two shuffles) passes to the next. It has the frames that derive
 * from one range of the journal, or is an instruction to the levels.
 *
 * @param kind of the row
 * @param place in the journal after all input of this row and of the rows before it
 * @param items frames with their destinations
 * @param arrivals of the row's messages
 */
public record JournalRow(Kind kind, Place place, List<Item> items, Arrivals arrivals) {
    public JournalRow(Kind kind, Place place, List<Item> items) {
        this(kind, place, items, Arrivals.NONE);
    }

    /** The kind of a row. */
    public enum Kind {
        /** The row has frames. */
        FRAMES,
        /** The journal has no more frames for now, so the levels wait for the answers in flight. */
        IDLE,
        /** Open calls end now, so that their changes can be stored. */
        FLUSH
    }

    /**
     * A place in the journal.
     *
     * @param offset of the place
     * @param messages number of messages before the place
     * @param sequence of the next message; -1 if no frame was read yet
     */
    public record Place(long offset, long messages, long sequence) {}

    /**
     * A frame and its destination.
     *
     * @param port of the exit that emitted the frame
     * @param bucket to which the frame goes; -1 if it goes to no bucket
     * @param origin number of the stage and bucket that emitted the frame; -1 for the first stage. The egress counts
     *     results of each origin, to drop repeated ones
     * @param frame one whole frame; in rows of the journal one or more whole frames
     */
    public record Item(int port, int bucket, int origin, byte[] frame) {}

    /**
     * Returns a row without frames.
     *
     * @param kind of the row
     * @param place in the journal
     */
    public static JournalRow of(Kind kind, Place place) {
        return new JournalRow(kind, place, List.of());
    }
}
