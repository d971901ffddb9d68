package org.wallaroo.spark.realtime;

import org.apache.spark.SparkContext;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeMode;
import org.wallaroo.spark.engine.Engine;
import org.wallaroo.spark.journal.JournalHead;
import org.wallaroo.spark.journal.JournalOffset;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;

/** Plans the batches of the source: one partition, which begins at the offset at which the last batch ended. */
final class JournalStream implements MicroBatchStream, SupportsRealTimeMode, SupportsAdmissionControl {
    private final Settings settings;
    private JournalOffset start;

    JournalStream(Settings settings) {
        this.settings = settings;
    }

    /** A partition of a batch: the journal from an offset on. */
    record Begin(Settings settings, JournalOffset start) implements InputPartition {}

    /** Returns the offset at which a new query begins, and begins its engine: the first task comes seconds later. */
    @Override
    public Offset initialOffset() {
        JournalOffset first = new JournalOffset(Long.parseUnsignedLong(settings.journalId(), 16), 0, 0);
        Engine.guard(settings).beginNew(first, SparkContext.getOrCreate().getLocalProperty(Attempt.QUERY));
        return first;
    }

    @Override
    public Offset deserializeOffset(String json) {
        return JournalOffset.parse(json);
    }

    @Override
    public Offset latestOffset() {
        throw new UnsupportedOperationException("the source is read in real-time mode only");
    }

    @Override
    public Offset latestOffset(Offset from, ReadLimit limit) {
        return from; // a batch of real-time mode ends where its readers end
    }

    @Override
    public ReadLimit getDefaultReadLimit() {
        return ReadLimit.allAvailable();
    }

    @Override
    public InputPartition[] planInputPartitions(Offset from) {
        start = (JournalOffset) from;
        BatchEnd.begin(settings);
        return new InputPartition[] {new Begin(settings, start)};
    }

    @Override
    public InputPartition[] planInputPartitions(Offset from, Offset to) {
        throw new UnsupportedOperationException("the source is read in real-time mode only");
    }

    @Override
    public Offset mergeOffsets(PartitionOffset[] ends) {
        if (ends.length != 1) {
            throw OperatorFailure.of("I901", "reason", ends.length + " tasks read a batch; expected one");
        }
        JournalOffset end = (JournalOffset) ends[0];
        BatchEnd.check(settings, start, end);
        return end;
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return partition -> new JournalPartitionReader((Begin) partition);
    }

    @Override
    public void commit(Offset end) {
        // The driver releases the processed part of the journal.
    }

    @Override
    public void stop() {
        Engine.guard(settings).stop();
        JournalHead.close(settings);
    }
}
