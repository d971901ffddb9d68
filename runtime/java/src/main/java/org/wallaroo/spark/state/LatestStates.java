package org.wallaroo.spark.state;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongPredicate;
import java.util.function.Predicate;

/** Reads a log, oldest entry first, and finds for each key the state at the end of the log. */
final class LatestStates {
    private final Predicate<StateKey> wanted;
    private final LongPredicate hasValue;
    private final Map<StateKey, StateValue> states = new LinkedHashMap<>();
    private final List<byte[]> parts = new ArrayList<>(); // pieces of a state whose last piece has not come
    private StateKey key; // key of the state in parts
    private int encoding;
    private int pieces;
    private int taken;
    private long size;

    /** Makes the reader of a log that returns all states. */
    LatestStates() {
        this(state -> true, size -> true);
    }

    /**
     * Makes the reader of a log.
     *
     * @param wanted says whether a state is wanted
     * @param hasValue says whether a value of this size is wanted, too
     */
    LatestStates(Predicate<StateKey> wanted, LongPredicate hasValue) {
        this.wanted = wanted;
        this.hasValue = hasValue;
    }

    /** Reads the next entry of the log. */
    void take(byte[] data) {
        LogEntry entry = new LogEntry(data);
        if (entry.piece >= 0) {
            takePiece(entry);
            return;
        }
        checkWhole();
        for (int number = 0; number < entry.count; number++) {
            StateKey found = entry.key(number);
            if (!wanted.test(found)) {
                continue;
            }
            if (entry.isAbsent(number)) {
                states.remove(found);
            } else {
                byte[] value = entry.value(number);
                List<byte[]> shown = hasValue.test(value.length) ? List.of(value) : List.of();
                states.put(found, new StateValue(entry.encoding, value.length, shown));
            }
        }
    }

    private void takePiece(LogEntry entry) {
        StateKey found = entry.key(0);
        boolean belongs = taken == 0 || found.equals(key) && entry.encoding == encoding && entry.pieces == pieces;
        if (entry.piece != taken || !belongs) {
            throw LogEntry.damaged(
                    "piece " + entry.piece + " of " + entry.pieces + " of a state comes after " + taken + " pieces");
        }
        key = found;
        encoding = entry.encoding;
        pieces = entry.pieces;
        taken++;
        size += entry.value(0).length;
        boolean isWanted = wanted.test(key);
        if (isWanted && hasValue.test(size)) {
            parts.add(entry.value(0));
        } else {
            parts.clear();
        }
        if (taken < pieces) {
            return;
        }
        if (isWanted) {
            states.put(key, new StateValue(encoding, size, List.copyOf(parts)));
        }
        parts.clear();
        taken = 0;
        size = 0;
    }

    private void checkWhole() {
        if (taken > 0) {
            throw LogEntry.damaged("a state of " + pieces + " pieces ends after " + taken);
        }
    }

    /** Returns the states at the end of the log, in the order in which their keys came. */
    Map<StateKey, StateValue> end() {
        checkWhole();
        return states;
    }
}
