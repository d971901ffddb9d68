package org.wallaroo.spark.state;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;
import org.wallaroo.spark.bucket.BucketStore;
import org.wallaroo.spark.bucket.BucketVersion;
import org.wallaroo.spark.message.Columns;

/** The states of a bucket at the end of a batch, as frames with several states each. */
public final class LeftStates implements Iterator<byte[]> {
    private final Iterator<Map.Entry<StateKey, StateValue>> states;
    private Map.Entry<StateKey, StateValue> following;

    /**
     * Reads a bucket.
     *
     * @param number of the bucket in the store
     */
    public LeftStates(BucketStore store, int number) {
        LatestStates reader = new LatestStates(state -> true, size -> true);
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

    /** Returns a frame of states of one port and encoding; its keys are those of the states. */
    @Override
    public byte[] next() {
        int port = following.getKey().port();
        int encoding = following.getValue().encoding();
        List<byte[]> keys = new ArrayList<>();
        List<byte[]> values = new ArrayList<>();
        long bytes = 0;
        while (following != null && following.getKey().port() == port && following.getValue().encoding() == encoding
                && (values.isEmpty() || bytes + following.getValue().size() <= LogWriter.ENTRY_BYTES)) {
            keys.add(following.getKey().key());
            values.add(following.getValue().whole());
            bytes += following.getKey().key().length + following.getValue().size();
            advance();
        }
        return new Columns(port, encoding, 0, 0, keys, LongStream.range(0, keys.size()).toArray(), new long[0], new long[0],
                List.of(), new BitSet(), values).toBytes();
    }
}
