package org.wallaroo.spark.stage;

import java.util.Iterator;
import java.util.List;
import org.wallaroo.spark.message.JournalRow;

/** A stage of a level (the stages between two shuffles). It gets the frames of one range of the journal at a time. */
interface LevelStage {
    /** Says whether frames of a port enter the stage. */
    boolean takes(int port);

    /**
     * Runs frames in steps. Each {@code next} of the returned iterator runs one step.
     *
     * @param items frames that enter the stage, all of one range
     * @return iterator over outputs of steps; outputs with the same port and origin are in the order of sequences
     */
    Iterator<List<JournalRow.Item>> run(List<JournalRow.Item> items);

    /**
     * Ends open calls.
     *
     * @return the remaining outputs: dead letters that are new because a call was repeated
     */
    List<JournalRow.Item> flush();

    /** Opens streams and reads versions in advance, so that the first message does not wait for them. */
    void warm();

    /** Ends the streams. */
    void close();
}
