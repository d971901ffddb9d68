package org.wallaroo.spark.state;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.wallaroo.spark.bucket.BucketStore;
import org.wallaroo.spark.bucket.BucketVersion;
import org.wallaroo.spark.message.Columns;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.query.OperatorFailure;

/** The states of a bucket at the end of a batch, which the user has asked for, as frames with several states each. */
public final class FinalStates implements Iterator<byte[]> {
    private static final int COLUMN_BYTES = 16; // largest body of a frame with one state, without key and value

    private final Iterator<Map.Entry<StateKey, StateValue>> states;
    private final Map<Integer, String> names;
    private Map.Entry<StateKey, StateValue> following;

    /**
     * Reads a bucket.
     *
     * @param number of the bucket in the store
     * @param names of the states by port
     */
    public FinalStates(BucketStore store, int number, Map<Integer, String> names) {
        this.names = names;
        LatestStates reader = new LatestStates();
        BucketVersion version = store.version(number);
        store.log(number, version).forEach(reader::take);
        states = reader.end().entrySet().iterator();
        advance();
    }

    private void advance() {
        following = states.hasNext() ? states.next() : null;
    }

    @Override
    public boolean hasNext() {
        return following != null;
    }

    private long size() {
        return following.getKey().key().length + following.getValue().size();
    }

    /**
     * Returns a frame with the next states of the same port and encoding: their keys, and the states as values.
     *
     * @throws OperatorFailure C525 if a state is larger than a frame
     */
    @Override
    public byte[] next() {
        int port = following.getKey().port();
        int encoding = following.getValue().encoding();
        List<byte[]> keys = new ArrayList<>();
        List<byte[]> values = new ArrayList<>();
        long bytes = 0;
        if (size() + COLUMN_BYTES > Frames.MAX_BODY_BYTES) {
            throw OperatorFailure.of("C525", "step", "gives_states", "what", "state \"%s\" of the key \"%.80s\"".formatted(
                    names.get(port), new String(following.getKey().key(), StandardCharsets.UTF_8)), "size", size(),
                    "limit", Frames.MAX_BODY_BYTES - COLUMN_BYTES, "hint", "key and state are one row");
        }
        while (following != null && following.getKey().port() == port && following.getValue().encoding() == encoding
                && (values.isEmpty() || bytes + size() <= LogWriter.ENTRY_BYTES)) {
            bytes += size();
            keys.add(following.getKey().key());
            values.add(following.getValue().whole());
            advance();
        }
        return Columns.keyed(port, encoding, keys, List.of(), values).toBytes();
    }
}
