package org.wallaroo.spark.microbatch;

import java.util.Iterator;
import java.util.function.Supplier;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;

/**
 * Passes on the rows of a task, and makes its errors readable: removes the encoded fields, which are for Wallaroo's
 * driver. In a PySpark job that calls {@code apply} there is no such driver.
 */
record PlainErrors(Iterator<byte[]> rows) implements Iterator<byte[]> {
    /**
     * Runs a task and returns its rows. Only in a run, without {@code apply}, do errors keep the fields for the driver.
     */
    static Iterator<byte[]> of(Settings settings, Supplier<Iterator<byte[]>> task) {
        return settings.applied() != null ? new PlainErrors(plainly(task)) : task.get();
    }

    @Override
    public boolean hasNext() {
        return plainly(rows::hasNext);
    }

    @Override
    public byte[] next() {
        return plainly(rows::next);
    }

    private static <T> T plainly(Supplier<T> work) {
        try {
            return work.get();
        } catch (OperatorFailure error) {
            throw error.forPeople();
        }
    }
}
