package org.wallaroo.spark.microbatch;

import java.util.Iterator;
import java.util.function.Supplier;
import org.wallaroo.spark.query.Applied;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;

/** The rows of a task in a user's own query, whose failures only people will read. */
record PlainRows(Iterator<byte[]> rows) implements Iterator<byte[]> {
    /** Returns the rows that a task makes, unchanged if the application is not applied. */
    static Iterator<byte[]> of(Settings settings, Supplier<Iterator<byte[]>> task) {
        return Applied.is(settings) ? new PlainRows(plainly(task)) : task.get();
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
