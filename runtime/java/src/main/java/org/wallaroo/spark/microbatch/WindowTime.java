package org.wallaroo.spark.microbatch;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.wallaroo.spark.bucket.SparkBucketStore;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.query.Ticks;

/**
 * Makes ticks from the times of rows, for windows, timers and ttl in a PySpark job ({@code apply}). The ticks come
 * after all messages of a micro-batch.
 *
 * <p>Each task of level 0 sends one tick to each partition, with the latest time of its rows. All levels of a partition
 * compute the same time from these ticks. The ticks of a level come after the output of earlier levels at their ticks.
 */
final class WindowTime {
    static final long AFTER_ALL = -4096; // sequence of the first tick; sequences have no sign
    private static final long END_MS = 1L << 60;
    private static final long SILENCE_MS = 1L << 50; // after such a silence all windows have emitted their content
    private static final long FIRST_MS = -62_135_596_800_000L; // windows and timers accept the years 1 to 9999
    private static final long LAST_MS = 253_402_300_799_999L;

    private final Settings settings;
    private final Ticks ticks;

    WindowTime(Settings settings) {
        this.settings = settings;
        this.ticks = settings.applied().ticks();
    }

    /** Says whether a time is in the range that windows and timers accept. */
    static boolean isTime(long ms) {
        return FIRST_MS <= ms && ms <= LAST_MS;
    }

    /**
     * Returns the tick that a task of level 0 sends at its end, or an empty list if it sends none.
     *
     * @param source number of the source in the list of sources that Spark reads
     * @param latest the latest time of the task's rows; {@code Long.MIN_VALUE} if no row has a time
     */
    List<JournalRow.Item> tickOfTask(int source, long latest) {
        return areOfData() && latest != Long.MIN_VALUE ? List.of(tick(source, 0, latest)) : List.of();
    }

    /** Returns a tick without a time, with which each partition ends a batch, so that windows end even without rows. */
    static byte[] end() {
        return Frames.tick(AFTER_ALL, Long.MIN_VALUE);
    }

    /** Returns the largest sequence that a message may have. Ticks from times of rows have larger ones. */
    long last() {
        return areOfData() ? AFTER_ALL - 1 : -1;
    }

    private boolean areOfData() {
        return ticks.are(Ticks.END) || ticks.are(Ticks.WATERMARKS);
    }

    /** Returns a partition's frames, with ticks of this level in place of the ticks that tasks of level 0 have sent. */
    List<JournalRow.Item> withLevelTicks(List<JournalRow.Item> items, SparkBucketStore store, int level) {
        if (!areOfData()) {
            return items;
        }
        List<JournalRow.Item> made = new ArrayList<>(items);
        made.removeIf(item -> item.port() == Frames.TICK_PORT);
        List<JournalRow.Item> sent = items.stream().filter(item -> item.port() == Frames.TICK_PORT).toList();
        if (sent.isEmpty()) {
            return made;
        }
        List<Long> times = ticks.are(Ticks.END) ? ending(sent) : passed(latest(sent, store));
        int number = (level - 1) * 3; // after the output of earlier levels at their ticks
        for (long time : times) {
            made.add(tick(0, number++, time));
        }
        return made;
    }

    /**
     * Returns the times of a batch's last ticks: the latest time of all rows, then two times that end all windows. A
     * batch that returns its states leaves windows open, so it has no tick, or only the first one. Steps that get
     * results in the order of event time need this tick, since otherwise results of silent keys would come too late.
     */
    private List<Long> ending(List<JournalRow.Item> sent) {
        long latest = sent.stream().mapToLong(item -> Frames.timeMs(item.frame())).max().orElseThrow();
        long most = settings.applied().inTime().isEmpty() ? 0 : 1;
        return Stream.of(latest, END_MS, END_MS + SILENCE_MS).limit(settings.applied().givesStates() ? most : 3)
                .filter(time -> time != Long.MIN_VALUE).toList();
    }

    /** Returns the watermark in a list of one, or an empty list until each source has had a row with a time. */
    private List<Long> passed(Map<String, Long> latest) {
        if (!latest.keySet().containsAll(ticks.delays().keySet())) {
            return List.of();
        }
        return List.of(ticks.delays().entrySet().stream()
                .mapToLong(each -> latest.get(each.getKey()) - each.getValue()).min().orElseThrow());
    }

    /** Returns the latest time of each source, by the source's name, and stores these times. */
    private Map<String, Long> latest(List<JournalRow.Item> sent, SparkBucketStore store) {
        Map<String, Long> latest = new TreeMap<>();
        byte[] before = store.times();
        if (before != null) {
            Json.parse(new String(before, StandardCharsets.UTF_8)).properties()
                    .forEach(each -> latest.put(each.getKey(), each.getValue().asLong()));
        }
        for (JournalRow.Item item : sent) {
            String source = settings.records().get(item.origin()).name();
            latest.merge(source, Frames.timeMs(item.frame()), Math::max);
        }
        store.storeTimes(Json.write(latest).getBytes(StandardCharsets.UTF_8));
        return latest;
    }

    private static JournalRow.Item tick(int origin, int number, long timeMs) {
        return new JournalRow.Item(Frames.TICK_PORT, -1, origin, Frames.tick(AFTER_ALL + number, timeMs));
    }
}
