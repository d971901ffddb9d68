package org.wallaroo.spark.account;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.wallaroo.spark.journal.JournalOffset;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.query.StageSettings;

/**
 * The counts of messages between two barriers of real-time mode: read from the journal, processed and emitted by each
 * stage, and delivered to the egress. They show whether a message was lost or passed on twice.
 *
 * <p>{@code Audit} checks single calls. The account checks the ways between calls: from the journal to the sources,
 * from one stage to the next, and from the last stages to the egress. At a barrier no call is open, so both ends of
 * each way have equal counts.
 */
public final class Account implements CallCounts {
    private final List<Map<String, List<Integer>>> levels; // ports that each stage takes, by its id
    private final String reader; // the stage of the sources, which takes the journal
    private final Map<String, Integer> levelOf = new HashMap<>();
    private final Map<String, Map<Integer, Long>> ran = new HashMap<>(); // processed messages, by stage and port
    private final List<Map<Integer, Long>> given = new ArrayList<>(); // emitted messages, by level and port
    private final Map<Integer, Long> delivered = new HashMap<>(); // by port
    private final Counters counters = new Counters();
    private long read; // messages of the journal before the last barrier

    /**
     * Starts all counts at 0, except the count of messages that were read from the journal.
     *
     * @param levels for each level the input ports of its stages, by the stage's id. The first stage of the first level
     *     reads the journal
     * @param read number of messages that were read from the journal before this account begins
     */
    public Account(List<Map<String, List<Integer>>> levels, long read) {
        this.levels = levels;
        this.reader = levels.get(0).keySet().iterator().next();
        this.read = read;
        for (int level = 0; level < levels.size(); level++) {
            given.add(new HashMap<>());
            for (String stage : levels.get(level).keySet()) {
                levelOf.put(stage, level);
            }
        }
    }

    /** Returns the account of an engine that begins at an offset of the journal. */
    public static Account of(Settings settings, JournalOffset start) {
        List<Map<String, List<Integer>>> levels = new ArrayList<>();
        for (List<StageSettings> level : settings.levels()) {
            Map<String, List<Integer>> stages = new LinkedHashMap<>();
            level.forEach(stage -> stages.put(stage.opening().getStage().getId(), stage.entries()));
            levels.add(stages);
        }
        return new Account(levels, start.messages());
    }

    @Override
    public Counters counters() {
        return counters;
    }

    @Override
    public void ran(String stage, Map<Integer, Long> messages) {
        Map<Integer, Long> mine = ran.computeIfAbsent(stage, id -> new HashMap<>());
        messages.forEach((port, count) -> mine.merge(port, count, Long::sum));
    }

    @Override
    public void gave(String stage, Map<Integer, Long> messages) {
        Map<Integer, Long> counts = given.get(levelOf.get(stage));
        messages.forEach((port, count) -> counts.merge(port, count, Long::sum));
    }

    @Override
    public void gave(String stage, List<JournalRow.Item> items) {
        add(items, given.get(levelOf.get(stage)));
    }

    /** Counts the messages in frames that were delivered to the egress. */
    public void delivered(List<JournalRow.Item> items) {
        add(items, delivered);
    }

    private static void add(List<JournalRow.Item> items, Map<Integer, Long> counts) {
        items.forEach(item -> counts.merge(item.port(), Frames.count(item.frame(), 0), Long::sum));
    }

    /**
     * Checks at a barrier that the counts add up, and sets them to 0.
     *
     * @param messages number of messages of the journal before this barrier
     * @throws OperatorFailure I902 if messages did not arrive, or arrived twice
     */
    public void check(long messages) {
        long came = ran.getOrDefault(reader, Map.of()).values().stream().mapToLong(Long::longValue).sum();
        if (came != messages - read) {
            throw unbalanced("the journal had " + (messages - read) + " messages, stage \"" + reader + "\" has run " + came);
        }
        Map<Integer, Long> passing = new TreeMap<>(); // messages that left a level and that no stage took yet
        for (int level = 0; level < levels.size(); level++) {
            given.get(level).forEach((port, count) -> passing.merge(port, count, Long::sum));
            checkLevel(levels.get(level), passing);
        }
        Set<Integer> ports = new TreeSet<>(passing.keySet());
        ports.addAll(delivered.keySet());
        for (int port : ports) {
            check(port, "egress", passing.getOrDefault(port, 0L), delivered.getOrDefault(port, 0L));
        }
        read = messages;
        ran.clear();
        given.forEach(Map::clear);
        delivered.clear();
    }

    /**
     * Checks that each stage has processed all messages for its ports, and removes these messages from {@code passing}.
     */
    private void checkLevel(Map<String, List<Integer>> stages, Map<Integer, Long> passing) {
        stages.forEach((stage, ports) -> {
            for (int port : stage.equals(reader) ? List.<Integer>of() : ports) {
                if (Frames.isControl(port)) {
                    continue; // ticks and visits are not counted, and no stage emits them
                }
                long count = ran.getOrDefault(stage, Map.of()).getOrDefault(port, 0L);
                check(port, "stage \"" + stage + "\"", passing.getOrDefault(port, 0L), count);
            }
        });
        stages.values().forEach(passing.keySet()::removeAll);
    }

    private static void check(int port, String taker, long left, long came) {
        if (left != came) {
            throw unbalanced(left + " messages left by port " + port + ", " + came + " of them came to the " + taker);
        }
    }

    private static OperatorFailure unbalanced(String reason) {
        return OperatorFailure.of("I902", "what", "real-time mode since the last stored states",
                "effect", "the states were not stored", "reason", reason);
    }
}
