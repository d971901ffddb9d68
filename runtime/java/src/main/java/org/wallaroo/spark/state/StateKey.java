package org.wallaroo.spark.state;

import java.util.Arrays;

/**
 * Identifies a state by its port and key.
 *
 * @param port of the state
 * @param key of the message
 */
record StateKey(int port, byte[] key) implements Comparable<StateKey> {
    @Override
    public boolean equals(Object other) {
        return other instanceof StateKey that && port == that.port && Arrays.equals(key, that.key);
    }

    @Override
    public int hashCode() {
        return 31 * port + Arrays.hashCode(key);
    }

    /** Orders by the bytes of keys, then by port. */
    @Override
    public int compareTo(StateKey other) {
        int order = Arrays.compareUnsigned(key, other.key);
        return order != 0 ? order : Integer.compare(port, other.port);
    }
}
