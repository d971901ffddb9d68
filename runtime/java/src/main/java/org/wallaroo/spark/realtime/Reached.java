package org.wallaroo.spark.realtime;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.wallaroo.spark.query.Settings;

/** How far queries of this virtual machine have come while their batches run. */
public final class Reached {
    private static final Map<String, Long> MESSAGES = new ConcurrentHashMap<>();

    private static final Set<String> READING = ConcurrentHashMap.newKeySet();

    private Reached() {}

    /** Messages that come from now on are read at once. */
    public static void read(Settings settings) {
        READING.add(settings.text());
    }

    static boolean isReading(String settings) {
        return READING.contains(settings);
    }

    public static void set(Settings settings, long messages) {
        MESSAGES.merge(settings.text(), messages, Math::max); // a task that is repeated begins before
    }

    static long messages(String settings) {
        return MESSAGES.getOrDefault(settings, -1L);
    }
}
