package org.wallaroo.spark.state;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.wallaroo.spark.query.ChainedIterator;

/** Turns states into {@link LoadRow}s. Rows are made when the caller asks for them, so that few are in memory. */
final class LogRows<T> extends ChainedIterator<byte[]> {
    private final Iterator<T> states;
    private final LogWriter writer;
    private final BiConsumer<LogWriter, T> add;
    private final Consumer<LogWriter> last;
    private List<byte[]> made = new ArrayList<>();
    private boolean hasEnded;

    /**
     * Prepares the rows, which are made from {@code states} only when the caller asks for them.
     *
     * @param layout of the logs
     * @param states to write
     * @param add writes one state
     * @param last writes notes that follow all states
     */
    LogRows(LogWriter.Layout layout, Iterator<T> states, BiConsumer<LogWriter, T> add, Consumer<LogWriter> last) {
        this.states = states;
        this.writer = new LogWriter(layout, row -> made.add(row.toBytes()));
        this.add = add;
        this.last = last;
    }

    @Override
    protected Iterator<byte[]> following() {
        while (made.isEmpty() && states.hasNext()) {
            add.accept(writer, states.next());
        }
        if (made.isEmpty() && !hasEnded) {
            hasEnded = true;
            writer.flush();
            last.accept(writer);
        }
        List<byte[]> rows = made;
        made = new ArrayList<>();
        return rows.isEmpty() ? null : rows.iterator();
    }
}
