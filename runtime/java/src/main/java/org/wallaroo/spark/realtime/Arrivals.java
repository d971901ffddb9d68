package org.wallaroo.spark.realtime;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import wallaroo.service.v1.Service.Arrived;

/**
 * When the messages of a parcel arrived at the gateway, and when the engine began with them.
 *
 * @param messages by the time of their arrival in milliseconds since 1970; of TCP sources and generators only
 * @param begunMs when the engine began, in milliseconds since 1970
 * @param begunNs the same moment by {@link System#nanoTime}
 */
record Arrivals(Map<Long, Long> messages, long begunMs, long begunNs) {
    /** Of a parcel without messages. */
    static final Arrivals NONE = new Arrivals(Map.of(), 0, 0);

    /** Returns those of frames of the journal, which begin to be processed now. */
    static Arrivals now(byte[] frames, Set<Integer> sources) {
        Map<Long, Long> messages = new TreeMap<>();
        ByteBuffer view = ByteBuffer.wrap(frames).order(ByteOrder.LITTLE_ENDIAN);
        for (int at = 0; at < frames.length; at += Frames.bytes(frames, at)) {
            boolean hasColumns = frames[at + 4] != 0; // of a connector or a topic: the time is the data's own
            if (!hasColumns && sources.contains(Frames.port(frames, at))) {
                messages.merge(view.getLong(at + 24), Frames.count(frames, at), Long::sum);
            }
        }
        return new Arrivals(messages, System.currentTimeMillis(), System.nanoTime());
    }

    /** Returns how many messages they are. */
    long count() {
        return messages.values().stream().mapToLong(Long::longValue).sum();
    }

    /** Returns how many milliseconds ago the engine began. */
    long computedMs() {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begunNs);
    }

    /** Returns them as the egress takes them. */
    Iterable<Arrived> forEgress() {
        return messages.entrySet().stream()
                .map(each -> Arrived.newBuilder().setTimeMs(each.getKey()).setMessages(each.getValue()).build())
                .toList();
    }
}
