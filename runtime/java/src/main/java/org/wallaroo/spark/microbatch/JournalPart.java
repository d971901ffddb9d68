package org.wallaroo.spark.microbatch;

import java.nio.ByteBuffer;
import org.apache.spark.sql.connector.read.InputPartition;
import org.wallaroo.spark.journal.JournalOffset;

/**
 * A range of a journal that one task reads, between two boundaries of frames. Spark passes it to the task as a row.
 *
 * @param number of the journal in the query
 * @param journal id of the journal
 * @param begin offset at which the part begins
 * @param end offset at which the part ends
 */
record JournalPart(int number, long journal, long begin, long end) implements InputPartition {
    private static final int BYTES = 28;

    JournalOffset start() {
        return new JournalOffset(journal, begin, 0);
    }

    byte[] toBytes() {
        return ByteBuffer.allocate(BYTES).putInt(number).putLong(journal).putLong(begin).putLong(end).array();
    }

    static JournalPart fromBytes(byte[] row) {
        ByteBuffer buffer = ByteBuffer.wrap(row);
        return new JournalPart(buffer.getInt(), buffer.getLong(), buffer.getLong(), buffer.getLong());
    }
}
