package org.wallaroo.spark.state;

import java.util.Iterator;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Row;

/** Makes rows for {@link FirstLogs} from states that a user gives, as port, key, encoding and value. */
final class GivenStates implements MapPartitionsFunction<Row, byte[]> {
    private static final long serialVersionUID = 1L;

    private final LogWriter.Layout layout;

    GivenStates(LogWriter.Layout layout) {
        this.layout = layout;
    }

    @Override
    public Iterator<byte[]> call(Iterator<Row> states) {
        return new LogRows<>(layout, states, writer -> state -> add(writer, state), writer -> { });
    }

    private static void add(LogWriter writer, Row state) {
        byte[] value = state.getAs(3);
        writer.add(new StateKey(state.getInt(0), state.getAs(1)),
                new StateValue(state.getInt(2), value.length, java.util.List.of(value)));
    }
}
