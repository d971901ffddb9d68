package org.wallaroo.spark.message;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import wallaroo.service.v1.Service.Arrived;

/**
 * The times at which the messages of a row arrived at the gateway, and the time at which their processing began. The
 * monitor's latencies are computed from them.
 *
 * @param groups one group for each frame whose messages have a time of arrival
 * @param begunMs time at which processing began, in milliseconds since 1970
 * @param begunNs the same moment by {@link System#nanoTime}
 */
public record Arrivals(List<Group> groups, long begunMs, long begunNs) {
    /** The arrivals of a row without messages. */
    public static final Arrivals NONE = new Arrivals(List.of(), 0, 0);

    /**
     * The messages of a frame, which count as arrived at the same time.
     *
     * @param offset place in the journal after the frame
     * @param timeMs time at which the first message arrived, in milliseconds since 1970
     * @param messages number of messages
     */
    public record Group(long offset, long timeMs, long messages) {}

    /**
     * Returns the arrivals of frames of the journal whose processing begins now.
     *
     * @param frames whole frames
     * @param end offset in the journal after the frames
     * @param sources ports of the sources
     * @param topics ports of topics, whose frames have the times at which the records arrived in Kafka
     */
    public static Arrivals now(byte[] frames, long end, Set<Integer> sources, Set<Integer> topics) {
        List<Group> groups = new ArrayList<>();
        ByteBuffer view = ByteBuffer.wrap(frames).order(ByteOrder.LITTLE_ENDIAN);
        for (int at = 0; at < frames.length; at += Frames.bytes(frames, at)) {
            int port = Frames.port(frames, at);
            boolean isOfData = frames[at + 4] != 0 && !topics.contains(port); // a connector sends its own times
            if (!isOfData && sources.contains(port)) {
                long offset = end - frames.length + at + Frames.bytes(frames, at);
                groups.add(new Group(offset, view.getLong(at + 24), Frames.count(frames, at)));
            }
        }
        return new Arrivals(groups, System.currentTimeMillis(), System.nanoTime());
    }

    /** Returns only the arrivals of frames that end after an offset of the journal. */
    public Arrivals after(long offset) {
        boolean isWhole = groups.isEmpty() || groups.get(0).offset() > offset;
        return isWhole ? this
                : new Arrivals(groups.stream().filter(each -> each.offset() > offset).toList(), begunMs, begunNs);
    }

    /** Returns the number of messages. */
    public long count() {
        return groups.stream().mapToLong(Group::messages).sum();
    }

    /** Returns the milliseconds since the processing of the row began. */
    public long computedMs() {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begunNs);
    }

    /** Returns the arrivals in the form that the egress takes: for each time the number of messages. */
    public Iterable<Arrived> forEgress() {
        Map<Long, Long> messages = new TreeMap<>();
        groups.forEach(each -> messages.merge(each.timeMs(), each.messages(), Long::sum));
        return messages.entrySet().stream()
                .map(each -> Arrived.newBuilder().setTimeMs(each.getKey()).setMessages(each.getValue()).build())
                .toList();
    }
}
