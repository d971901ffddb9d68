package org.wallaroo.spark.account;

import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongUnaryOperator;
import org.wallaroo.spark.message.Arrivals;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Json;

/**
 * The numbers of a query in real-time mode that the monitor shows. They outlive the engine: if a new engine repeats
 * messages that were not committed, each message counts once.
 */
public final class MonitorNumbers {
    private static final Map<String, MonitorNumbers> OF = new ConcurrentHashMap<>();
    private static final int MOST_TIMES = 100_000; // distinct times of one kind until take(); others are dropped

    private final NavigableMap<Long, Counters> barriers = new TreeMap<>(); // by offset, from the running batch on
    private Counters shown = new Counters();
    private long shownAt = -1; // offset of the barrier to which the shown numbers belong
    private long reached = -1; // offset of the input whose output is in the outbox
    private long messages = -1; // number of messages before the offset `reached`
    private long timed = -1; // offset of the input whose times were counted
    private long changes;
    private boolean isReading;
    private Map<String, Map<Long, Long>> times = new TreeMap<>(); // messages by kind and milliseconds, since take()

    /** Returns the numbers of the query that has these settings. */
    public static MonitorNumbers of(String settings) {
        return OF.computeIfAbsent(settings, text -> new MonitorNumbers());
    }

    /** Returns the counters at the offset at which a batch begins, and drops older ones, which nobody needs again. */
    public synchronized Counters begin(long offset) {
        barriers.headMap(offset).clear();
        return barriers.getOrDefault(offset, new Counters());
    }

    /** Notes the counters at a barrier, to be shown when the output of all input before its offset is in the outbox. */
    public synchronized void put(long offset, Counters counters) {
        barriers.put(offset, counters);
    }

    /** Records that the query is ready: from now on it reads each message as soon as the message comes. */
    public synchronized void beginReading() {
        isReading = true;
    }

    public synchronized boolean isReading() {
        return isReading;
    }

    /** Returns the number of messages whose output is all in the outbox; -1 before the first such message. */
    public synchronized long messages() {
        return messages;
    }

    /** Records that the outbox has the output of all input before a place. A repeated task may report a place again. */
    public synchronized void reach(JournalRow.Place place) {
        changes += place.offset() > reached ? 1 : 0;
        reached = Math.max(reached, place.offset());
        messages = Math.max(messages, place.messages());
        Map.Entry<Long, Counters> last = barriers.floorEntry(reached);
        if (last != null && last.getKey() > shownAt) {
            shownAt = last.getKey();
            shown = last.getValue();
            changes++;
        }
    }

    /** Returns a number that grows with each change, so that the driver fetches the numbers only after changes. */
    public synchronized long changes() {
        return changes;
    }

    /** Returns those arrivals that are not counted yet: an earlier engine, whose task failed, may have counted some. */
    public synchronized Arrivals untimed(Arrivals arrivals) {
        return arrivals.after(timed);
    }

    /**
     * Notes how long the engine took for messages whose output it delivers now.
     *
     * @param offset offset after the messages
     * @param arrivals arrivals that were not counted before
     * @param hasOutput whether the messages have output. Without output, the egress cannot measure the end-to-end time
     * @param readableMs gives the time at which the engine could read the journal up to an offset. If it is not known
     *     (0), a message has waited since its arrival
     */
    public synchronized void time(
            long offset, Arrivals arrivals, boolean hasOutput, LongUnaryOperator readableMs) {
        long count = arrivals.count();
        if (count == 0) {
            return;
        }
        timed = Math.max(timed, offset);
        changes++;
        long compute = arrivals.computedMs();
        add("compute", compute, count);
        for (Arrivals.Group group : arrivals.groups()) {
            long since = readableMs.applyAsLong(group.offset());
            long age = Math.max(0, arrivals.begunMs() - group.timeMs());
            add("wait", since == 0 ? age : Math.max(0, arrivals.begunMs() - since), group.messages());
            if (!hasOutput) {
                add("end_to_end", age + compute, group.messages());
            }
        }
    }

    private void add(String stage, long ms, long messages) {
        Map<Long, Long> counts = times.computeIfAbsent(stage, name -> new TreeMap<>());
        if (counts.size() < MOST_TIMES || counts.containsKey(ms)) {
            counts.merge(ms, messages, Long::sum);
        }
    }

    /** Returns the id of the last visit whose output is all in the outbox; 0 if there is none. */
    public synchronized long lastVisit() {
        return shown.visits().isEmpty() ? 0 : shown.visits().lastKey();
    }

    /** Returns the numbers as JSON. Times are those since the last call of this method. */
    public synchronized String take() {
        String text = Json.object("offset", reached, "steps", shown.steps(), "stores", shown.stores(),
                "visits", shown.visits(), "barrier", shownAt, "times", times);
        times = new TreeMap<>();
        return text;
    }
}
