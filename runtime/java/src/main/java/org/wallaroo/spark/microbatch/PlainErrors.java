package org.wallaroo.spark.microbatch;

import java.util.Iterator;
import java.util.function.Supplier;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;

/** The rows of a task in a user's own query. Errors have no fields for Wallaroo's driver: only people read them. */
record PlainErrors(Iterator<byte[]> rows) implements Iterator<byte[]> {
    /** Runs a task and returns its rows. The errors stay as they are if the application is not applied. */
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
