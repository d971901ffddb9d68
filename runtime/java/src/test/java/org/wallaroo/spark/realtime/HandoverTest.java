package org.wallaroo.spark.realtime;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(60)
class HandoverTest {
    private static final long LONG_NS = TimeUnit.SECONDS.toNanos(30);
    private static final int BUCKETS = 3;

    /** What Spark's store is to be: versions, and entries by bucket and number. */
    private static final class Plain implements BucketStore {
        private final Map<Integer, BucketVersion> versions = new HashMap<>();
        private final Map<List<Integer>, String> entries = new HashMap<>();

        private Plain copy() {
            Plain made = new Plain();
            made.versions.putAll(versions);
            made.entries.putAll(entries);
            return made;
        }

        @Override
        public BucketVersion version(int bucket) {
            return versions.getOrDefault(bucket, BucketVersion.EMPTY);
        }

        @Override
        public List<byte[]> log(int bucket, BucketVersion version) {
            List<byte[]> found = new ArrayList<>();
            for (int entry = version.first(); entry < version.last(); entry++) {
                found.add(entries.get(List.of(bucket, entry)).getBytes());
            }
            return found;
        }

        @Override
        public void store(int bucket, BucketVersion before, BucketVersion after, List<byte[]> changes) {
            assertEquals(version(bucket), before);
            for (int entry = before.first(); entry < Math.min(after.first(), before.last()); entry++) {
                entries.remove(List.of(bucket, entry));
            }
            for (int i = 0; i < changes.size(); i++) {
                entries.put(List.of(bucket, before.last() + i), new String(changes.get(i)));
            }
            versions.put(bucket, after);
        }

        private static List<String> texts(List<byte[]> log) {
            return log.stream().map(String::new).toList();
        }
    }

    /** Changes states in calls as an engine does, and compares what it sees with a store that is never late. */
    private static final class Calls implements Runnable {
        private final Random random;
        private final Handover handover;
        private final AheadStore store;
        private final Plain expected;
        private final Map<Long, Plain> atBarrier;
        private final AtomicReference<Throwable> failure = new AtomicReference<>();
        private long offset;
        private int rounds;

        private Calls(Random random, Handover handover, Plain begin, long offset, Map<Long, Plain> atBarrier) {
            this.random = random;
            this.handover = handover;
            this.store = new AheadStore(handover);
            this.expected = begin.copy();
            this.offset = offset;
            this.atBarrier = atBarrier;
            rounds = 20 + random.nextInt(20);
        }

        @Override
        public void run() {
            try {
                for (; rounds > 0; rounds--) {
                    round();
                }
                handover.end();
            } catch (IllegalStateException | AssertionError | NullPointerException error) {
                failure.set(error);
                handover.fail(new IllegalStateException(error));
            }
        }

        private void round() {
            for (int call = random.nextInt(4); call >= 0; call--) {
                int bucket = random.nextInt(BUCKETS);
                BucketVersion version = store.version(bucket);
                assertEquals(expected.version(bucket), version);
                if (random.nextInt(3) == 0) { // a worker that has begun again
                    assertEquals(Plain.texts(expected.log(bucket, version)), Plain.texts(store.log(bucket, version)));
                }
                List<byte[]> changes = new ArrayList<>();
                for (int count = random.nextInt(3); count > 0; count--) {
                    changes.add(("change " + random.nextInt()).getBytes());
                }
                BucketVersion after =
                        version.after(random.nextLong(), changes.size(), 10, random.nextInt(5) == 0);
                store.store(bucket, version, after, changes);
                expected.store(bucket, version, after, changes);
            }
            offset++;
            synchronized (atBarrier) {
                atBarrier.put(offset, expected.copy());
            }
            handover.put(new Barrier(new Parcel.Place(offset, offset, offset), offset, store.bind()));
            if (random.nextInt(3) > 0) {
                handover.acknowledge(offset);
            }
            if (rounds == 1) {
                handover.acknowledge(offset);
            }
        }
    }

    /** Tasks begin and end, and some fail; Spark's store is always that of the last barrier that a task has got. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void whatATaskStoresIsThatOfABarrier(long seed) throws InterruptedException {
        Random random = new Random(seed);
        Plain committed = new Plain();
        long at = 0;
        for (int engines = 0; engines < 5; engines++) {
            Handover handover = new Handover(new JournalOffset(1, at, at));
            Map<Long, Plain> atBarrier = new HashMap<>();
            atBarrier.put(at, committed);
            Calls calls = new Calls(new Random(random.nextLong()), handover, committed, at, atBarrier);
            Thread thread = new Thread(calls);
            thread.start();
            boolean hasMore = true;
            while (hasMore) {
                Plain running = committed.copy();
                boolean fails = random.nextInt(8) == 0;
                for (int rows = random.nextInt(6); hasMore && rows >= 0; rows--) {
                    hasMore = handover.await(LONG_NS);
                    handover.serve(running, calls.store::stored);
                }
                if (fails) { // the batch is repeated with another engine
                    break;
                }
                committed = running;
                at = handover.last().offset();
                synchronized (atBarrier) {
                    assertEquals(atBarrier.get(at).versions, committed.versions);
                    assertEquals(atBarrier.get(at).entries, committed.entries);
                }
            }
            thread.interrupt();
            thread.join();
            assertTrue(!hasMore || calls.failure.get() instanceof IllegalStateException
                    || calls.failure.get() == null, () -> "" + calls.failure.get());
        }
    }

    @Test
    void aBarrierWaitsForTheEgress() throws InterruptedException {
        Handover handover = new Handover(new JournalOffset(1, 5, 0));
        handover.put(new Barrier(new Parcel.Place(9, 1, 1), 3, List.of()));
        handover.acknowledge(2);
        assertFalse(handover.await(1));
        assertEquals(5, handover.last().offset());
        handover.acknowledge(3);
        assertTrue(handover.await(1));
        assertEquals(9, handover.last().offset());
    }

    /** Whatever a batch takes of the barriers, all of them are taken before the error comes, in a batch of its own. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void anErrorComesAfterAllBarriers(long seed) throws InterruptedException {
        Random random = new Random(seed);
        int count = random.nextInt(6);
        Handover handover = new Handover(new JournalOffset(1, 5, 0));
        for (int number = 1; number <= count; number++) {
            handover.put(new Barrier(new Parcel.Place(5 + number, number, number), number, List.of()));
        }
        handover.endWith(OperatorFailure.of("R611", "reason", "test"));
        handover.acknowledge(count);
        int taken = 0;
        while (taken < count) {
            assertEquals(-1, handover.endOffset());
            int rows = 1 + random.nextInt(3);
            for (int row = 0; row < rows && handover.await(LONG_NS); row++) {
                taken++;
            }
            if (taken == count) {
                assertFalse(handover.await(LONG_NS), "the batch with the last barrier is to be committed");
            }
            handover.begin();
        }
        assertEquals(5 + count, handover.endOffset());
        OperatorFailure failure = assertThrows(OperatorFailure.class, () -> handover.await(LONG_NS));
        assertTrue(failure.getMessage().startsWith("R611"), failure.getMessage());
    }

    @Test
    void aTaskFailsAsItsEngineDoes() {
        Handover handover = new Handover(new JournalOffset(1, 5, 0));
        handover.fail(OperatorFailure.of("I901", "reason", "test"));
        handover.fail(new IllegalStateException("a consequence"));
        assertThrows(OperatorFailure.class, () -> handover.await(1));
    }
}
