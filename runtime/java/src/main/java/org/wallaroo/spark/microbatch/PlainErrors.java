package org.wallaroo.spark.microbatch;

import java.util.Iterator;
import java.util.function.Supplier;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;

/**
 * The rows of a task in a user's own query (an applied application). Only people read the errors of such a query, so
 * the fields that Wallaroo's driver reads in other errors are taken away.
 */
record PlainErrors(Iterator<byte[]> rows) implements Iterator<byte[]> {
    /** Runs a task and returns its rows. If the application is not applied, its errors stay as they are. */
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
