package org.wallaroo.spark.account;

import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.wallaroo.spark.message.Arrivals;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Json;

/**
 * The numbers of a query in this virtual machine, for the monitor, over all engines of the query. A new engine repeats
 * messages that were not committed; they count once.
 */
public final class Numbers {
    private static final Map<String, Numbers> OF = new ConcurrentHashMap<>();
    private static final int MOST_TIMES = 100_000; // distinct times of one kind until take(); others are dropped

    private final NavigableMap<Long, Counters> barriers = new TreeMap<>(); // by offset, from the running batch on
    private Counters shown = new Counters();
    private long shownAt = -1; // offset of the barrier to which the shown numbers belong
    private long reached = -1; // offset of the input whose output is in the outbox
    private long messages = -1; // number of messages of that input
    private long timed = -1; // offset of the input whose times were counted
    private long changes;
    private boolean isReading;
    private Map<String, Map<Long, Long>> times = new TreeMap<>(); // messages by kind and milliseconds, since take()

    public static Numbers of(String settings) {
        return OF.computeIfAbsent(settings, text -> new Numbers());
    }

    /** Takes note that a batch begins: no engine will begin before it. Returns the counters of the barrier there. */
    public synchronized Counters begin(long offset) {
        barriers.headMap(offset).clear();
        return barriers.getOrDefault(offset, new Counters());
    }

    /** Notes the numbers of a barrier. */
    public synchronized void put(long offset, Counters counters) {
        barriers.put(offset, counters);
    }

    /** Takes note that the query reads each message from now on as soon as it comes. */
    public synchronized void read() {
        isReading = true;
    }

    public synchronized boolean isReading() {
        return isReading;
    }

    /** Returns the number of messages that are processed with all their output in the outbox; -1 if none is yet. */
    public synchronized long messages() {
        return messages;
    }

    /** Takes note that all output of input before a place is in the outbox. A repeated task begins earlier. */
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

    /** Returns a count of the changes of the numbers. */
    public synchronized long changes() {
        return changes;
    }

    /** Returns the arrivals that are not counted yet. After a repetition, earlier attempts have counted some. */
    public synchronized Arrivals untimed(Arrivals arrivals) {
        return arrivals.after(timed);
    }

    /**
     * Notes how long the engine took for messages, whose output the egress has got.
     *
     * @param offset after the messages
     * @param arrivals that were not counted before
     * @param hasOutput whether there is output, whose end-to-end time the egress measures; otherwise this method does
     */
    public synchronized void time(long offset, Arrivals arrivals, boolean hasOutput) {
        long count = arrivals.count();
        if (count == 0) {
            return;
        }
        timed = Math.max(timed, offset);
        changes++;
        long compute = arrivals.computedMs();
        add("compute", compute, count);
        for (Arrivals.Group group : arrivals.groups()) {
            long wait = Math.max(0, arrivals.begunMs() - group.timeMs());
            add("wait", wait, group.messages());
            if (!hasOutput) {
                add("end_to_end", wait + compute, group.messages());
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

    /** Returns the counts of the visits after an id as JSON. */
    public synchronized String visits(long after) {
        return Json.object("offset", shownAt, "visits", shown.visitNumbers(after));
    }

    /** Returns the numbers as JSON; times are counted since the last call. */
    public synchronized String take() {
        String text = Json.object("offset", reached, "steps", shown.steps(),
                "stores", shown.storeNumbers(), "times", times);
        times = new TreeMap<>();
        return text;
    }
}
