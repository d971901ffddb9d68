package org.wallaroo.spark.account;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.wallaroo.spark.bucket.BucketVersion;
import org.wallaroo.spark.deliver.Work;
import org.wallaroo.spark.message.Arrivals;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.FramesTest;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Json;
import wallaroo.worker.v1.WorkerOuterClass.StepCount;
import wallaroo.worker.v1.WorkerOuterClass.Visited;

/**
 * Compares the numbers with sums over a journal. Drawn engines fail, and begin again where the last batch has ended.
 */
class MonitorNumbersTest {
    private static final List<String> PATHS = List.of("0/sources/0", "0/steps/0", "0/sinks/0");
    private static final int BUCKETS = 3;

    /** The counts for one place of the journal, which are the same whichever engine processes it. */
    private record Work(List<StepCount> counts, int bucket, int keys, List<Visited> visits) {
        private static Work drawn(Random random) {
            List<StepCount> counts = PATHS.stream()
                    .map(path -> StepCount.newBuilder().setPath(path).setMessagesIn(random.nextInt(9))
                            .setMessagesOut(random.nextInt(9)).setDeadLetters(random.nextInt(3)).putMore("dropped_late", random.nextInt(3)).build())
                    .toList();
            List<Visited> visits = new ArrayList<>();
            for (int number = random.nextInt(3); number > 0; number--) { // of several buckets or steps
                int keys = random.nextInt(9);
                visits.add(Visited.newBuilder().setId(1 + random.nextInt(9)).setPath(PATHS.get(1)).setKeys(keys)
                        .setFailed(random.nextInt(keys + 1)).build());
            }
            return new Work(counts, random.nextInt(BUCKETS), random.nextInt(9), visits);
        }

        private void run(Counters counters) {
            counters.count(counts);
            counters.visit(visits);
            counters.store("s1", bucket, keys, new BucketVersion(1, 1, 0, 1, keys * 9L, keys));
        }
    }

    private final List<Work> journal = new ArrayList<>();
    private final Map<String, Long> times = new TreeMap<>();

    private Map<String, Map<String, Long>> steps(int end) {
        Map<String, Map<String, Long>> sums = new TreeMap<>();
        for (StepCount count : journal.subList(0, end).stream().flatMap(work -> work.counts().stream()).toList()) {
            Map<String, Long> sum = sums.computeIfAbsent(count.getPath(), path -> new TreeMap<>());
            sum.merge("messages_in", count.getMessagesIn(), Long::sum);
            sum.merge("messages_out", count.getMessagesOut(), Long::sum);
            sum.merge("dead_letters", count.getDeadLetters(), Long::sum);
            count.getMoreMap().forEach((name, number) -> sum.merge(name, number, Long::sum));
        }
        return sums;
    }

    private Map<String, List<Long>> stores(int end) {
        Map<String, List<Long>> sizes = new TreeMap<>();
        journal.subList(0, end).forEach(work -> sizes.put(
                String.valueOf(work.bucket()), List.of((long) work.keys(), work.keys() * 10L)));
        return sizes;
    }

    private Map<String, Map<String, Long>> visits(int end) {
        Map<String, Map<String, Long>> sums = new TreeMap<>();
        journal.subList(0, end).forEach(work -> work.visits().forEach(each -> {
            Map<String, Long> sum = sums.computeIfAbsent(String.valueOf(each.getId()), id -> new TreeMap<>());
            sum.merge("keys", each.getKeys(), Long::sum);
            sum.merge("failed", each.getFailed(), Long::sum);
        }));
        return sums;
    }

    private static Map<String, List<Long>> lists(JsonNode object) {
        Map<String, List<Long>> found = new TreeMap<>();
        object.properties().forEach(field -> {
            List<Long> values = new ArrayList<>();
            field.getValue().forEach(value -> values.add(value.asLong()));
            found.put(field.getKey(), values);
        });
        return found;
    }

    private void check(MonitorNumbers numbers, int shown) {
        JsonNode found = Json.parse(numbers.take());
        assertEquals(Json.parse(Json.write(steps(shown))), found.get("steps"));
        assertEquals(Json.parse(Json.write(visits(shown))), found.get("visits"));
        assertEquals(visits(shown).keySet().stream().mapToLong(Long::parseLong).max().orElse(0), numbers.lastVisit());
        assertEquals(shown, Math.max(0, found.get("barrier").asLong()));
        JsonNode stores = found.get("stores").path("s1");
        assertEquals(stores(shown), stores.isMissingNode() ? Map.of() : lists(stores));
        found.get("times").properties().forEach(stage -> stage.getValue()
                .forEach(count -> times.merge(stage.getKey(), count.asLong(), Long::sum)));
    }

    static IntStream seeds() {
        return IntStream.range(0, 200);
    }

    @ParameterizedTest
    @MethodSource("seeds")
    void whatIsRepeatedCountsOnce(int seed) {
        Random random = new Random(seed);
        IntStream.range(0, 40).forEach(place -> journal.add(Work.drawn(random)));
        MonitorNumbers numbers = MonitorNumbers.of("drawn " + seed);
        int committed = 0;
        int shown = 0;
        int most = 0;
        long ended = 0; // messages of rows without output
        while (committed < journal.size()) { // an engine
            Counters counters = new Counters();
            counters.restore(numbers.begin(committed));
            int given = committed;
            int place = committed;
            boolean isFailed = false;
            while (place < journal.size() && !isFailed) { // a row, which begins and ends where it did not before
                int end = Math.min(journal.size(), place + 1 + random.nextInt(4));
                journal.subList(place, end).forEach(work -> work.run(counters));
                Arrivals arrivals = numbers.untimed(arrivals(place, end));
                boolean hasOutput = random.nextBoolean();
                numbers.time(end, arrivals, hasOutput, offset -> 0);
                ended += hasOutput ? 0 : 2L * Math.max(0, end - Math.max(most, place));
                most = Math.max(most, end);
                place = end;
                if (random.nextInt(3) == 0 || end == journal.size()) { // a barrier, whose output is safe or not
                    numbers.put(end, counters.copy());
                    if (random.nextInt(4) > 0) {
                        numbers.reach(place(end));
                        given = end;
                        shown = Math.max(shown, given);
                    }
                }
                if (random.nextInt(5) == 0) { // a batch ends at the last barrier that was given
                    committed = given;
                    numbers.begin(committed);
                }
                isFailed = random.nextInt(6) == 0;
                check(numbers, shown);
            }
            committed = given == journal.size() ? given : committed;
        }
        check(numbers, journal.size());
        assertEquals(2L * most, times.get("compute"));
        assertEquals(2L * most, times.get("wait"));
        assertEquals(ended, times.getOrDefault("end_to_end", 0L));
    }

    @Test
    void aTimeThatIsKnownCountsHoweverManyThereAre() {
        MonitorNumbers numbers = MonitorNumbers.of("times");
        int known = 100_000; // a later one is dropped
        List<Arrivals.Group> groups = IntStream.range(0, known + 5)
                .mapToObj(time -> new Arrivals.Group(time, known - time, 1)).toList();
        for (int times = 0; times < 2; times++) {
            numbers.time(known, new Arrivals(groups, known, System.nanoTime()), true, offset -> 0);
        }
        JsonNode waits = Json.parse(numbers.take()).get("times").get("wait");
        assertEquals(known, waits.size());
        waits.forEach(count -> assertEquals(2, count.asInt()));
    }

    @Test
    void ofVisitsTheLatestAreKept() {
        Counters counters = new Counters();
        for (long id = 1; id <= 1500; id++) {
            counters.visit(List.of(Visited.newBuilder().setId(id).build()));
        }
        assertEquals(List.of(501L, 1500L), List.of(counters.visits().firstKey(), counters.visits().lastKey()));
    }

    private static Arrivals arrivals(int begin, int end) {
        List<Arrivals.Group> groups =
                IntStream.range(begin, end).mapToObj(place -> new Arrivals.Group(place + 1L, 5, 2)).toList();
        return new Arrivals(groups, 7, System.nanoTime());
    }

    private static JournalRow.Place place(long offset) {
        return new JournalRow.Place(offset, 10 * offset, -1);
    }

    @Test
    void numbersSayWhenTheyChange() {
        MonitorNumbers numbers = MonitorNumbers.of("changes");
        numbers.reach(place(1));
        numbers.reach(place(1));
        assertEquals(List.of(1L, 10L), List.of(numbers.changes(), numbers.messages()));
        numbers.put(1, new Counters());
        numbers.reach(place(1));
        assertEquals(2, numbers.changes());
        numbers.reach(place(1));
        assertEquals(2, numbers.changes());
        numbers.time(2, Arrivals.NONE, false, offset -> 0);
        assertEquals(2, numbers.changes());
        numbers.time(2, arrivals(1, 2), false, offset -> 0);
        assertEquals(3, numbers.changes());
    }

    @Test
    void messagesWaitFromTheTimeAtWhichTheyCouldBeRead() {
        MonitorNumbers numbers = MonitorNumbers.of("waits");
        List<Arrivals.Group> groups =
                IntStream.rangeClosed(1, 3).mapToObj(place -> new Arrivals.Group(place, 50, place)).toList();
        Map<Long, Long> readable = Map.of(1L, 0L, 2L, 90L, 3L, 120L); // not known; known; later than the clock says
        numbers.time(3, new Arrivals(groups, 100, System.nanoTime()), true, readable::get);
        assertEquals(Json.parse("{\"50\":1,\"10\":2,\"0\":3}"), Json.parse(numbers.take()).get("times").get("wait"));
    }

    @Test
    void timesAreThoseOfMessagesWithoutColumnsAndOfTopics() {
        byte[] mine = FramesTest.frame(2, 3, 0, new byte[4]);
        byte[] other = FramesTest.frame(9, 5, 3, new byte[4]);
        byte[] columns = FramesTest.frame(2, 7, 8, new byte[4]);
        columns[4] = 2;
        byte[] last = FramesTest.frame(2, 4, 15, new byte[9]);
        byte[] frames = Frames.joined(List.of(mine, other, columns, last));
        long end = 1000 + frames.length;
        Arrivals found = Arrivals.now(frames, end, Set.of(2), Set.of(9));
        assertEquals(List.of(1000L + mine.length, end), found.groups().stream().map(Arrivals.Group::offset).toList());
        assertEquals(7, found.count());
        assertEquals(4, found.after(1000L + mine.length).count());
        assertEquals(0, found.after(end).count());
        assertEquals(14, Arrivals.now(frames, end, Set.of(2), Set.of(2)).count());
    }
}
