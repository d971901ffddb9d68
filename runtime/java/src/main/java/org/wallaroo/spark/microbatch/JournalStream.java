package org.wallaroo.spark.microbatch;

import java.util.List;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.wallaroo.spark.journal.JournalOffset;
import org.wallaroo.spark.journal.JournalPlace;

/** Plans Spark's micro-batches over a journal: limits their size, and divides each into a range for each task. */
final class JournalStream implements MicroBatchStream, SupportsTriggerAvailableNow {
    private static final long PART_BYTES = 128 << 10; // a smaller part is not worth a task

    private final int number;
    private final JournalPlace journal;
    private final long batchBytes;
    private final int parts;
    private final long waitMs;
    private JournalOffset last; // end of the journal at which the query ends; null if it does not end by itself

    JournalStream(int number, JournalPlace journal, long batchBytes, int parts, long waitMs) {
        this.number = number;
        this.journal = journal;
        this.batchBytes = batchBytes;
        this.parts = parts;
        this.waitMs = waitMs;
    }

    @Override
    public Offset initialOffset() {
        return new JournalOffset(journal.end().journal(), 0, 0);
    }

    @Override
    public Offset deserializeOffset(String json) {
        return JournalOffset.parse(json);
    }

    @Override
    public void prepareForTriggerAvailableNow() {
        last = journal.end();
    }

    @Override
    public Offset latestOffset() {
        throw new UnsupportedOperationException("Spark asks with a limit");
    }

    @Override
    public ReadLimit getDefaultReadLimit() {
        return ReadLimit.maxBytes(batchBytes);
    }

    @Override
    public Offset latestOffset(Offset from, ReadLimit limit) {
        try {
            long most = limit instanceof ReadAllAvailable ? Long.MAX_VALUE : batchBytes;
            JournalOffset end = journal.limit((JournalOffset) from, most, last == null ? waitMs : 0);
            return last != null && last.offset() < end.offset() ? last : end;
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            return from;
        }
    }

    @Override
    public InputPartition[] planInputPartitions(Offset from, Offset to) {
        JournalOffset start = (JournalOffset) from;
        JournalOffset end = (JournalOffset) to;
        long most = Math.max(1, (end.offset() - start.offset()) / PART_BYTES);
        List<Long> ends = journal.split(start, end, (int) Math.min(parts, most));
        InputPartition[] found = new InputPartition[ends.size()];
        for (int i = 0; i < found.length; i++) {
            long begin = i == 0 ? start.offset() : ends.get(i - 1);
            found[i] = new JournalPart(number, start.journal(), begin, ends.get(i));
        }
        return found;
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return partition -> new OneRow(((JournalPart) partition).toBytes());
    }

    @Override
    public void commit(Offset end) {
        // The driver releases the processed part of the journal.
    }

    @Override
    public void stop() {
        journal.close();
    }
}
