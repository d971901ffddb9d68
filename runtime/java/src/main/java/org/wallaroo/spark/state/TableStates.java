package org.wallaroo.spark.state;

import com.google.protobuf.ByteString;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Row;
import wallaroo.record.v1.RecordOuterClass.GroupState;

/** Makes states of a group from the values of its Goka table, when a program moves from Goka to Wallaroo. */
final class TableStates implements MapPartitionsFunction<Row, byte[]> {
    private static final long serialVersionUID = 1L;
    private static final String PICKLE_HEAD = "\u0080\u0004cwallaroo.goka.state\nGroupState.from_bytes\nB"; // protocol 4
    private static final String PICKLE_END = "\u0085R.";
    private static final String NAME = GroupState.getDescriptor().getFullName();
    private static final int NAME_TAG = 72; // H: a message of protobuf follows its name
    private static final int IN_PYTHON = 16; // encoding of states
    private static final int IN_GO = 17;

    private final LogWriter.Layout layout;
    private final int port;
    private final boolean isPython;

    /**
     * Makes a function for the values of one table.
     *
     * @param port of the states
     * @param isPython whether the group's worker is in Python; otherwise it is in Go
     */
    TableStates(LogWriter.Layout layout, int port, boolean isPython) {
        this.layout = layout;
        this.port = port;
        this.isPython = isPython;
    }

    /** Takes rows with a key, its value, and whether several partitions have values of this key. */
    @Override
    public Iterator<byte[]> call(Iterator<Row> rows) {
        List<byte[]> examples = new ArrayList<>();
        long[] doubles = new long[1];
        return new LogRows<>(layout, rows, (writer, row) -> {
            byte[] state = state(row.getAs(1), isPython);
            int encoding = isPython ? IN_PYTHON : IN_GO;
            writer.add(new StateKey(port, row.getAs(0)), new StateValue(encoding, state.length, List.of(state)));
            if (row.getBoolean(2) && doubles[0]++ == 0) {
                examples.add(row.getAs(0));
            }
        }, writer -> examples.forEach(key -> writer.note("port", port, "double", doubles[0], "example",
                Base64.getEncoder().encodeToString(key))));
    }

    /** Returns a group's state for a value of its table, without joined values, in the form that its worker reads. */
    static byte[] state(byte[] value, boolean isPython) {
        byte[] message = GroupState.newBuilder().setValue(ByteString.copyFrom(value)).build().toByteArray();
        ByteArrayOutputStream state = new ByteArrayOutputStream();
        if (isPython) {
            state.writeBytes(PICKLE_HEAD.getBytes(StandardCharsets.ISO_8859_1));
            state.writeBytes(ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(message.length).array());
            state.writeBytes(message);
            state.writeBytes(PICKLE_END.getBytes(StandardCharsets.ISO_8859_1));
        } else {
            state.write(NAME_TAG);
            state.write(NAME.length());
            state.writeBytes(NAME.getBytes(StandardCharsets.ISO_8859_1));
            state.writeBytes(message);
        }
        return state.toByteArray();
    }
}
