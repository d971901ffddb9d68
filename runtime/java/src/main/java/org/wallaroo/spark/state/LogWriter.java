package org.wallaroo.spark.state;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Consumer;
import org.wallaroo.spark.message.Columns;
import org.wallaroo.spark.message.Keys;
import org.wallaroo.spark.query.Json;

/** Writes states as entries of their buckets' logs: small states together in an entry, a large state in pieces. */
final class LogWriter {
    static final int ENTRY_BYTES = 1 << 20;
    static final int PIECE_BYTES = 4 << 20;
    private static final int HELD_BYTES = 32 << 20; // size of states in memory above which entries are written early

    /**
     * The place of a stage's buckets in Spark's store.
     *
     * @param block of the stage
     * @param buckets number of buckets of the stage
     * @param targets keys by which Spark's shuffle brings rows to the partitions
     */
    record Layout(int block, int buckets, int[] targets) implements Serializable {
        private static final long serialVersionUID = 1L;
    }

    private record EntryGroup(int bucket, int port, int encoding) {}

    private static final class Pairs {
        private final List<byte[]> keys = new ArrayList<>();
        private final List<byte[]> values = new ArrayList<>();
        private long bytes;
    }

    private final Layout layout;
    private final int entryBytes;
    private final int pieceBytes;
    private final Consumer<LoadRow> out;
    private final Map<EntryGroup, Pairs> held = new LinkedHashMap<>();
    private long heldBytes;

    LogWriter(Layout layout, Consumer<LoadRow> out) {
        this(layout, ENTRY_BYTES, PIECE_BYTES, out);
    }

    LogWriter(Layout layout, int entryBytes, int pieceBytes, Consumer<LoadRow> out) {
        this.layout = layout;
        this.entryBytes = entryBytes;
        this.pieceBytes = pieceBytes;
        this.out = out;
    }

    /** Writes a state now, or later in one entry with other states. */
    void add(StateKey key, StateValue value) {
        int bucket = Keys.bucketOf(key.key(), layout.buckets());
        EntryGroup group = new EntryGroup(bucket, key.port(), value.encoding());
        if (value.size() > pieceBytes) {
            writePieces(group, key.key(), value.whole());
            return;
        }
        Pairs pairs = held.computeIfAbsent(group, made -> new Pairs());
        long bytes = key.key().length + value.size();
        if (pairs.bytes + bytes > entryBytes) {
            write(group, pairs);
        }
        pairs.keys.add(key.key());
        pairs.values.add(value.whole());
        pairs.bytes += bytes;
        heldBytes += bytes;
        if (heldBytes > HELD_BYTES) {
            flush();
        }
    }

    /** Writes the states that are not written yet. */
    void flush() {
        held.forEach(this::write);
        held.clear();
    }

    /** Writes a row with a note for the driver, and without states. */
    void note(Object... fields) {
        out.accept(new LoadRow(layout.targets()[0], -1, 0, 0, 1, bytes(Json.object(fields)), new byte[0]));
    }

    private void write(EntryGroup group, Pairs pairs) {
        if (!pairs.keys.isEmpty()) {
            byte[] entry = frame(group, pairs.keys, List.of(), pairs.values);
            out.accept(row(group, 0, 0, 1, entry, pairs.keys.size()));
        }
        heldBytes -= pairs.bytes;
        pairs.keys.clear();
        pairs.values.clear();
        pairs.bytes = 0;
    }

    private void writePieces(EntryGroup group, byte[] key, byte[] value) {
        int count = (value.length + pieceBytes - 1) / pieceBytes;
        long state = ThreadLocalRandom.current().nextLong();
        for (int number = 0; number < count; number++) {
            int start = number * pieceBytes;
            byte[] part = Arrays.copyOfRange(value, start, Math.min(value.length, start + pieceBytes));
            byte[] entry = frame(group, List.of(key), List.of(LogEntry.pieceHeader(number, count)), List.of(part));
            out.accept(row(group, state, number, count, entry, number == 0 ? 1 : 0));
        }
    }

    private LoadRow row(EntryGroup group, long state, int piece, int pieces, byte[] entry, int keys) {
        byte[] note = bytes(Json.object("port", group.port(), "keys", keys, "bytes", entry.length));
        int target = layout.targets()[group.bucket() % layout.targets().length];
        return new LoadRow(target, layout.block() * layout.buckets() + group.bucket(), state, piece, pieces, note, entry);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] frame(EntryGroup group, List<byte[]> keys, List<byte[]> headers, List<byte[]> values) {
        return Columns.keyed(group.port(), group.encoding(), keys, headers, values).toBytes();
    }
}
