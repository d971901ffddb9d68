package org.wallaroo.spark.state;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.Consumer;
import java.util.function.Function;

/** Turns states into rows of logs. Each row is written when a caller asks for it, so that few rows are in memory. */
final class LogRows<T> implements Iterator<byte[]> {
    private final Iterator<T> states;
    private final Deque<byte[]> made = new ArrayDeque<>();
    private final LogWriter writer;
    private final Consumer<T> add;
    private final Consumer<LogWriter> last;
    private boolean hasEnded;

    /**
     * Makes the iterator.
     *
     * @param layout layout of the logs
     * @param states states to write
     * @param add gets the writer, and returns the function that writes one state with this writer
     * @param last writes the rows that follow all states
     */
    LogRows(LogWriter.Layout layout, Iterator<T> states, Function<LogWriter, Consumer<T>> add, Consumer<LogWriter> last) {
        this.last = last;
        this.states = states;
        this.writer = new LogWriter(layout, row -> made.add(row.toBytes()));
        this.add = add.apply(writer);
    }

    @Override
    public boolean hasNext() {
        while (made.isEmpty() && !hasEnded) {
            if (states.hasNext()) {
                add.accept(states.next());
            } else {
                hasEnded = true;
                writer.end();
                last.accept(writer);
            }
        }
        return !made.isEmpty();
    }

    @Override
    public byte[] next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return made.remove();
    }
}
