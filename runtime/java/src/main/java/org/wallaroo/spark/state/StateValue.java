package org.wallaroo.spark.state;

import java.io.ByteArrayOutputStream;
import java.util.List;

/**
 * A serialized state, as it is in the log of a bucket.
 *
 * @param encoding of the frame
 * @param size bytes of the serialized state
 * @param parts the serialized state, in one part or in its pieces; empty if only the size is wanted
 */
record StateValue(int encoding, long size, List<byte[]> parts) {
    /** Returns the serialized state in one piece. */
    byte[] whole() {
        if (parts.size() == 1) {
            return parts.get(0);
        }
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        parts.forEach(all::writeBytes);
        return all.toByteArray();
    }
}
