package org.wallaroo.spark.microbatch;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.wallaroo.spark.account.CallCounts;
import org.wallaroo.spark.account.Counters;
import org.wallaroo.spark.message.Arrivals;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.worker.WorkerConnection;

/**
 * The counts of one attempt of a task. Before a micro-batch is published, {@code spark/account.py} compares the counts
 * of its tasks, to find lost or repeated messages.
 */
final class TaskAccount implements CallCounts {
    /** The payload of a row that has nothing to count: it only makes Spark run a partition. */
    static final byte[] EMPTY = "{\"steps\": {}}".getBytes(StandardCharsets.UTF_8);

    private final Attempt attempt;
    private final int level;
    private final Counters counters = new Counters();
    private final Map<List<Long>, Long> made = new LinkedHashMap<>(); // by bucket and port
    private final Map<List<Long>, Long> taken = new LinkedHashMap<>(); // by bucket, task and port
    private final Map<Long, List<Integer>> makers = new TreeMap<>(); // level and partition, by attempt
    private final Map<Integer, Long> staged = new TreeMap<>(); // by port
    private final Map<Long, Long> arrived = new TreeMap<>(); // number of messages by time
    private final Map<String, Long> begun = new TreeMap<>(); // time of first call, in ms since 1970, by stage
    private long read;
    private long records;
    private long bytesByFile;
    private long bytesByService;
    private Map<String, String> endings = Map.of(); // ends of workers' processes that this account reports

    TaskAccount(Attempt attempt, int level) {
        this.attempt = attempt;
        this.level = level;
    }

    @Override
    public void opened(String stage) {
        begun.putIfAbsent(stage, System.currentTimeMillis());
    }

    @Override
    public Counters counters() {
        return counters;
    }

    /** Counts messages of a journal. */
    void read(long messages, Arrivals arrivals) {
        read += messages;
        arrivals.groups().forEach(each -> arrived.merge(each.timeMs(), each.messages(), Long::sum));
    }

    /** Counts messages of a source that Spark itself reads. */
    void readBySpark(long messages) {
        records += messages;
    }

    /** Counts messages of a topic by time, rounded to 3 % of their age, since old records have many different times. */
    void arrived(long timeMs, long nowMs, long messages) {
        int bits = Long.SIZE - Long.numberOfLeadingZeros(Math.abs(nowMs - timeMs));
        long step = 1L << Math.max(0, bits - 6);
        arrived.merge(timeMs - Math.floorMod(timeMs, step), messages, Long::sum);
    }

    /** Counts bytes of a journal that were read from a file, or that a gateway has sent. */
    void bytes(long bytes, boolean isSent) {
        bytesByFile += isSent ? 0 : bytes;
        bytesByService += isSent ? bytes : 0;
    }

    /** Counts the messages of a row that the task makes for a later level. */
    void made(int bucket, ShuffleRow row) {
        made.merge(List.of((long) bucket, (long) row.port()), row.messages(), Long::sum);
    }

    /**
     * Counts the messages of a row that came from an earlier level. There is a count for each task that made such rows.
     */
    void took(int bucket, ShuffleRow row) {
        taken.merge(List.of((long) bucket, row.maker().attempt(), (long) row.port()), row.messages(), Long::sum);
        makers.put(row.maker().attempt(), List.of(row.maker().level(), row.maker().partition()));
    }

    /** Counts messages that were staged as output of a sink, or as dead letters. */
    void staged(int port, long messages) {
        staged.merge(port, messages, Long::sum);
    }

    /** Returns the account as JSON. */
    String json() {
        endings = WorkerConnection.takeEndings();
        return Json.object("batch", attempt.batch(), "level", level, "partition", attempt.partition(),
                "task", attempt.attempt(), "read", read, "records", records, "bytes_by_file", bytesByFile,
                "bytes_by_grpc", bytesByService, "made", rows(made), "taken", rows(taken), "makers", makers, "staged", staged,
                "arrived", arrived, "steps", counters.steps(), "stores", counters.stores(),
                "visits", counters.visits(), "begun", begun, "ended",
                System.currentTimeMillis(), "endings", endings);
    }

    /** Says whether a row of the last level is an account; other rows are frames. */
    static boolean isAccount(byte[] row) {
        return row[0] == '{';
    }

    /** Returns the counts of sources, steps and sinks in an account, by path and name. */
    static Map<String, Map<String, Long>> steps(byte[] json) {
        Map<String, Map<String, Long>> steps = new TreeMap<>();
        Json.parse(new String(json, StandardCharsets.UTF_8)).get("steps").properties()
                .forEach(step -> step.getValue().properties()
                        .forEach(count -> steps.computeIfAbsent(step.getKey(), path -> new TreeMap<>())
                                .put(count.getKey(), count.getValue().asLong())));
        return steps;
    }

    /** Lets another account report the processes of workers that have ended, since nobody will read this account. */
    void abort() {
        WorkerConnection.giveEndings(endings);
    }

    private static List<List<Long>> rows(Map<List<Long>, Long> counts) {
        List<List<Long>> rows = new ArrayList<>();
        counts.forEach((key, count) -> {
            List<Long> row = new ArrayList<>(key);
            row.add(count);
            rows.add(row);
        });
        return rows;
    }
}
