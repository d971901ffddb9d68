package org.wallaroo.spark.realtime;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.wallaroo.spark.realtime.Parcel.Kind;

/** Hands the outputs of a task attempt to the egress, and commits when all are acknowledged. */
final class EgressWriter implements DataWriter<InternalRow> {
    private final DeliverStream stream;
    private Parcel last = Parcel.of(Kind.IDLE, 0, 0);

    EgressWriter(Settings settings) {
        stream = new DeliverStream(settings, Attempt.current(), BatchEnd.begun(settings));
    }

    @Override
    public void write(InternalRow row) {
        Parcel parcel = Parcel.fromBytes(row.getBinary(0));
        for (Parcel.Item item : parcel.items()) {
            stream.deliver(item);
        }
        if (parcel.kind() == Kind.FRAMES) {
            stream.mark(parcel.messages());
        }
        stream.look();
        last = parcel;
    }

    @Override
    public WriterCommitMessage commit() {
        if (last.kind() != Kind.END) {
            throw OperatorFailure.of("I901", "reason", "a batch ends, and its input has not ended");
        }
        stream.finish();
        return new EgressSink.Covered(last.offset());
    }

    @Override
    public void abort() {
        stream.close();
    }

    @Override
    public void close() {
        stream.close();
    }
}
