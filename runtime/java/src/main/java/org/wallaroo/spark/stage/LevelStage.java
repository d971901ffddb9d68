package org.wallaroo.spark.stage;

import java.util.Iterator;
import java.util.List;
import org.wallaroo.spark.message.JournalRow;

/** A stage of a level. It processes the frames of one stretch of the journal after the other. */
interface LevelStage {
    /** Says whether frames of a port enter the stage. */
    boolean takes(int port);

    /**
     * Runs frames in steps. A step runs when it is asked for.
     *
     * @param items frames that enter the stage, all of one stretch
     * @return output of each step; results of one port and origin are in the order of sequences
     */
    Iterator<List<JournalRow.Item>> run(List<JournalRow.Item> items);

    /**
     * Ends open calls.
     *
     * @return dead letters that are new because a call was made again
     */
    List<JournalRow.Item> flush();

    /** Does work in advance that would delay the first message. */
    void warm();

    /** Ends the streams. */
    void close();
}
