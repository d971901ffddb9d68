package org.wallaroo.spark.realtime;

import java.util.List;

/** A stage of a level, run on frames of one stretch of the journal after the other. */
interface LevelStage {
    /** Says whether frames of a port enter it. */
    boolean takes(int port);

    /**
     * Runs frames.
     *
     * @param items those that enter it, all of one stretch
     * @return what it gives; results of one port and origin are in the order of sequences
     */
    List<Parcel.Item> run(List<Parcel.Item> items);

    /**
     * Ends open calls.
     *
     * @return dead letters that a call has when it is made again
     */
    List<Parcel.Item> flush();

    /** Does before the first message what would hold it up. */
    void warm();

    /** Ends the streams. */
    void close();
}
