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
 * The numbers of a query of this virtual machine, for who watches it: over all its engines, in which what was not
 * committed is run once more and counts once.
 */
public final class Numbers {
    private static final Map<String, Numbers> OF = new ConcurrentHashMap<>();
    private static final int MOST_TIMES = 100_000; // of one kind, that nobody has asked for

    private final NavigableMap<Long, Counters> barriers = new TreeMap<>(); // by offset, from the running batch on
    private Counters shown = new Counters();
    private long shownAt = -1; // offset
    private long reached = -1; // offset of the input whose output is in the outbox
    private long messages = -1; // of that input
    private long timed = -1; // offset of the input whose times were counted
    private long changes;
    private boolean isReading;
    private Map<String, Map<Long, Long>> times = new TreeMap<>(); // messages by milliseconds, since they were taken

    public static Numbers of(String settings) {
        return OF.computeIfAbsent(settings, text -> new Numbers());
    }

    /** A batch begins: no engine begins before it any more. Returns what the barrier there had. */
    public synchronized Counters begin(long offset) {
        barriers.headMap(offset).clear();
        return barriers.getOrDefault(offset, new Counters());
    }

    /** Notes the numbers of a barrier. */
    public synchronized void put(long offset, Counters counters) {
        barriers.put(offset, counters);
    }

    /** Messages that come from now on are read at once. */
    public synchronized void read() {
        isReading = true;
    }

    public synchronized boolean isReading() {
        return isReading;
    }

    /** Returns the number of messages that are processed with all their output in the outbox; -1: none yet. */
    public synchronized long messages() {
        return messages;
    }

    /** All output of input before a place is in the outbox; a task that is repeated begins before. */
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

    /** Returns how often something has changed. */
    public synchronized long changes() {
        return changes;
    }

    /** Returns those whose times were not counted: repeated ones were. */
    public synchronized Arrivals untimed(Arrivals arrivals) {
        return arrivals.after(timed);
    }

    /**
     * Notes the time that the engine took for messages, which it has given to the egress.
     *
     * @param offset after them
     * @param arrivals those that were not counted before
     * @param hasOutput whether the egress waits for sinks to take something of them; else they end here
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
        if (counts.size() < MOST_TIMES) {
            counts.merge(ms, messages, Long::sum);
        }
    }

    /** Returns the id of the last visit of which all output is in the outbox; 0: there is none. */
    public synchronized long lastVisit() {
        return shown.visits().isEmpty() ? 0 : shown.visits().lastKey();
    }

    /** Returns the counts of visits as JSON, those after the one of an id. */
    public synchronized String visits(long after) {
        return Json.object("offset", shownAt, "visits", shown.visitNumbers(after));
    }

    /** Returns the numbers as JSON; times are those since the last call. */
    public synchronized String take() {
        String text = Json.object("offset", reached, "steps", shown.steps(),
                "stores", shown.storeNumbers(), "times", times);
        times = new TreeMap<>();
        return text;
    }
}
