package org.wallaroo.spark.microbatch;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.PartitionReader;

/** Spark's reader of a partition that has one row, which the driver has planned. */
final class OneRow implements PartitionReader<InternalRow> {
    private final byte[] row;
    private boolean isRead;

    OneRow(byte[] row) {
        this.row = row;
    }

    @Override
    public boolean next() {
        boolean isFirst = !isRead;
        isRead = true;
        return isFirst;
    }

    @Override
    public InternalRow get() {
        return new GenericInternalRow(new Object[] {row});
    }

    @Override
    public void close() {
        // Nothing is open.
    }
}
