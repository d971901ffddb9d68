package org.wallaroo.spark.state;

import java.util.Iterator;
import java.util.Map;

/** Reads the states of logs, and returns them as rows for a new checkpoint, e.g. with more buckets (rescale). */
final class MovedStates extends StoredLogs<byte[]> {
    private static final long serialVersionUID = 1L;

    private final LogWriter.Layout layout;

    MovedStates(LogWriter.Layout layout) {
        this.layout = layout;
    }

    @Override
    LatestStates reader() {
        return new LatestStates(state -> true, size -> true);
    }

    @Override
    Iterator<byte[]> results(Map<StateKey, StateValue> states) {
        return new LogRows<>(layout, states.entrySet().iterator(),
                (writer, state) -> writer.add(state.getKey(), state.getValue()), writer -> { });
    }
}
