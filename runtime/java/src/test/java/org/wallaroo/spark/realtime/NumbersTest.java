package org.wallaroo.spark.realtime;

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
import wallaroo.worker.v1.WorkerOuterClass.StepCount;

/** Drawn engines that fail and begin again where the last batch has ended, against sums over a journal. */
class NumbersTest {
    private static final List<String> PATHS = List.of("0/sources/0", "0/steps/0", "0/sinks/0");
    private static final int BUCKETS = 3;

    /** What one place of the journal does, whoever runs it. */
    private record Work(List<StepCount> counts, int bucket, int keys) {
        private static Work drawn(Random random) {
            List<StepCount> counts = PATHS.stream()
                    .map(path -> StepCount.newBuilder().setPath(path).setMessagesIn(random.nextInt(9))
                            .setMessagesOut(random.nextInt(9)).setDeadLetters(random.nextInt(3)).build())
                    .toList();
            return new Work(counts, random.nextInt(BUCKETS), random.nextInt(9));
        }
    }

    private final List<Work> journal = new ArrayList<>();
    private final Map<String, Long> times = new TreeMap<>();

    private Map<String, List<Long>> steps(int end) {
        Map<String, List<Long>> sums = new TreeMap<>();
        journal.subList(0, end).forEach(work -> work.counts().forEach(count -> sums.merge(
                count.getPath(),
                List.of(count.getMessagesIn(), count.getMessagesOut(), count.getDeadLetters()),
                (one, two) -> IntStream.range(0, 3).mapToObj(at -> one.get(at) + two.get(at)).toList())));
        return sums;
    }

    private Map<String, List<Long>> stores(int end) {
        Map<String, List<Long>> sizes = new TreeMap<>();
        journal.subList(0, end).forEach(work -> sizes.put(
                String.valueOf(work.bucket()), List.of((long) work.keys(), work.keys() * 10L)));
        return sizes;
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

    private void check(Numbers numbers, int shown) {
        JsonNode found = Json.parse(numbers.take());
        assertEquals(steps(shown), lists(found.get("steps")));
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
        Numbers numbers = Numbers.of("drawn " + seed);
        int committed = 0;
        int shown = 0;
        int most = 0;
        while (committed < journal.size()) { // an engine
            Tally tally = new Tally();
            tally.restore(numbers.begin(committed));
            int given = committed;
            boolean isFailed = false;
            for (int place = committed; place < journal.size() && !isFailed; place++) {
                Work work = journal.get(place);
                tally.count(work.counts());
                tally.store("s1", work.bucket(), work.keys(), new BucketVersion(1, 1, 0, 1, work.keys() * 9L, work.keys()));
                numbers.time(place + 1L, new Arrivals(Map.of(5L, 2L), 7, System.nanoTime()), work.keys() % 2 == 0);
                most = Math.max(most, place + 1);
                if (random.nextInt(3) == 0 || place + 1 == journal.size()) { // a barrier, whose output is safe or not
                    numbers.put(place + 1L, tally.copy());
                    if (random.nextInt(4) > 0) {
                        numbers.reach(place + 1L);
                        given = place + 1;
                        shown = Math.max(shown, given);
                    }
                }
                if (random.nextInt(5) == 0) { // a batch ends at the last barrier that was given
                    committed = given;
                    numbers.begin(committed);
                }
                isFailed = random.nextInt(12) == 0;
                check(numbers, shown);
            }
            committed = given == journal.size() ? given : committed;
        }
        check(numbers, journal.size());
        assertEquals(2L * most, times.get("compute"));
        assertEquals(2L * most, times.get("wait"));
        long ended = journal.subList(0, most).stream().filter(work -> work.keys() % 2 > 0).count();
        assertEquals(2L * ended, times.getOrDefault("end_to_end", 0L));
    }

    @Test
    void numbersSayWhenTheyChange() {
        Numbers numbers = Numbers.of("changes");
        numbers.reach(1);
        numbers.reach(1);
        assertEquals(1, numbers.changes());
        numbers.put(1, new Tally());
        numbers.reach(1);
        assertEquals(2, numbers.changes());
        numbers.time(2, Arrivals.NONE, false);
        assertEquals(2, numbers.changes());
        numbers.time(2, new Arrivals(Map.of(0L, 1L), 0, 0), false);
        assertEquals(3, numbers.changes());
    }

    @Test
    void timesAreThoseOfMessagesWithoutColumns() {
        byte[] mine = FramesTest.frame(2, 3, 0, new byte[4]);
        byte[] other = FramesTest.frame(9, 5, 3, new byte[4]);
        byte[] columns = FramesTest.frame(2, 7, 8, new byte[4]);
        columns[4] = 2;
        Arrivals found = Arrivals.now(Frames.joined(List.of(mine, other, columns)), Set.of(2));
        assertEquals(3, found.count());
    }
}
