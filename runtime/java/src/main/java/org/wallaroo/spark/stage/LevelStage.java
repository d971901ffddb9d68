package org.wallaroo.spark.stage;

import java.util.Iterator;
import java.util.List;
import org.wallaroo.spark.message.JournalRow;

/** A stage of a level, run on frames of one stretch of the journal after the other. */
interface LevelStage {
    /** Says whether frames of a port enter it. */
    boolean takes(int port);

    /**
     * Runs frames, in steps: the next one begins when it is asked for.
     *
     * @param items those that enter it, all of one stretch
     * @return what each step gives; results of one port and origin are in the order of sequences
     */
    Iterator<List<JournalRow.Item>> run(List<JournalRow.Item> items);

    /**
     * Ends open calls.
     *
     * @return dead letters that a call has when it is made again
     */
    List<JournalRow.Item> flush();

    /** Does before the first message the work that would hold it up. */
    void warm();

    /** Ends the streams. */
    void close();
}
