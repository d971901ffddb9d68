package org.wallaroo.spark.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.wallaroo.spark.bucket.BucketStore;
import org.wallaroo.spark.bucket.BucketVersion;
import org.wallaroo.spark.bucket.Changes;
import org.wallaroo.spark.bucket.PlainStore;
import org.wallaroo.spark.deliver.Barrier;
import org.wallaroo.spark.deliver.BarrierQueue;
import org.wallaroo.spark.journal.JournalOffset;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Attempt;

@Timeout(60)
class EngineGuardTest {
    private static final long LONG_NS = TimeUnit.SECONDS.toNanos(30);
    private static final long END = 60;

    /** The error with which a task dies. */
    private static final class Death extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    /** Spark's store in a task that dies after so many calls of the store. */
    private static final class MortalStore implements BucketStore {
        private final PlainStore store;
        private int left;

        private MortalStore(PlainStore store, int calls) {
            this.store = store;
            this.left = calls;
        }

        private void live() {
            if (left-- == 0) {
                throw new Death();
            }
        }

        @Override
        public BucketVersion version(int bucket) {
            live();
            return store.version(bucket);
        }

        @Override
        public List<byte[]> log(int bucket, BucketVersion version) {
            live();
            return store.log(bucket, version);
        }

        @Override
        public void store(int bucket, BucketVersion before, BucketVersion after, List<byte[]> changes) {
            live();
            store.store(bucket, before, after, changes);
        }
    }

    /** A query whose tasks die, and still call the guard when other tasks have taken their place. */
    private static final class Query {
        private final Random random;
        private final List<Long> zombies = new ArrayList<>();
        private PlainStore committed = new PlainStore();
        private long at;
        private long attempts;
        private long begun = -1; // batch of which an attempt has begun and failed
        private int failures;
        private int made;
        private ModelEngine engine;
        private final EngineGuard guard;

        private Query(long seed) {
            random = new Random(seed);
            guard = new EngineGuard((start, attempt) -> {
                made++;
                failures += engine != null && engine.isBroken() ? 1 : 0;
                engine = new ModelEngine(new Random(random.nextLong()), committed, start, attempt, END, 200);
                return engine;
            });
        }

        /**
         * Runs an attempt at a batch. Returns whether the task has ended without error, so that Spark commits the
         * batch.
         */
        private boolean attempt(long batch) throws InterruptedException {
            ModelEngine before = engine;
            long number = attempts++;
            PlainStore running = committed.copy();
            MortalStore store =
                    new MortalStore(running, random.nextInt(3) == 0 ? random.nextInt(25) : Integer.MAX_VALUE);
            long place = at;
            try {
                guard.begin(new JournalOffset(1, at, at), new Attempt("query", batch, 0, number));
                assertTrue(begun < batch || before != engine, "an engine serves one attempt at a batch");
                EngineClient task = new EngineClient(guard, number);
                for (int rows = random.nextInt(8); rows >= 0 && task.await(LONG_NS); rows--) {
                    store.live();
                    late(batch);
                    JournalRow.Place reached = task.reached();
                    task.serve(store);
                    place = reached == null ? place : reached.offset();
                    store.live();
                }
            } catch (Death | IllegalStateException error) {
                failures++;
                begun = batch;
                if (random.nextBoolean()) {
                    guard.failed(number);
                }
                zombies.add(number);
                return false;
            }
            engine.at(place).assertSame(running);
            committed = running;
            at = place;
            return true;
        }

        /** Lets an attempt that is over make a call that it had still to make. The call must be refused. */
        private void late(long batch) {
            if (zombies.isEmpty() || random.nextInt(3) > 0) {
                return;
            }
            long zombie = zombies.get(random.nextInt(zombies.size()));
            switch (random.nextInt(5)) {
                case 0 -> assertThrows(IllegalStateException.class, () -> guard.engine().queue().next(zombie, 0));
                case 1 -> assertThrows(IllegalStateException.class, () -> guard.stored(zombie));
                case 2 -> assertThrows(IllegalStateException.class, () -> guard.engine().queue().answer(zombie, List.of(new byte[40])));
                case 3 -> {
                    guard.failed(zombie);
                    assertFalse(engine.isClosed(), "it is not its engine");
                }
                default -> assertThrows(IllegalStateException.class, () -> guard.begin(
                        new JournalOffset(1, at, at), new Attempt("query", batch, 0, random.nextInt((int) attempts))));
            }
        }
    }

    /**
     * Spark's store has the states of the last committed barrier, whenever tasks die, and whatever they call
     * afterwards.
     */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20})
    void whatIsCommittedIsThatOfABarrier(long seed) throws InterruptedException {
        Query query = new Query(seed);
        if (seed % 2 == 0) { // Spark asks a new query where it begins, maybe twice
            query.guard.beginNew(new JournalOffset(1, 0, 0), "query");
            query.guard.beginNew(new JournalOffset(1, 0, 0), "query");
        }
        for (long batch = 0; query.at < END; batch++) {
            while (!query.attempt(batch)) {
                assertTrue(query.failures < 1000, "it does not come to an end");
            }
        }
        assertTrue(query.made <= 1 + query.failures, query.made + " engines, " + query.failures + " failures");
        query.guard.stop();
    }

    /** An attempt may still wait for a barrier when Spark has given it up and begun another attempt. */
    @Test
    void anOlderAttemptThatWaitsTakesNothing() throws InterruptedException {
        Idle engine = new Idle(new BarrierQueue(new JournalOffset(1, 5, 5), 1));
        EngineGuard guard = new EngineGuard((start, attempt) -> engine);
        guard.begin(new JournalOffset(1, 5, 5), new Attempt("query", 1, 0, 1));
        AtomicReference<Throwable> end = new AtomicReference<>();
        Thread late = new Thread(() -> end.set(assertThrows(RuntimeException.class, () -> guard.engine().queue().next(1, LONG_NS))));
        late.start();
        while (late.getState() != Thread.State.TIMED_WAITING) {
            Thread.onSpinWait();
        }
        guard.begin(new JournalOffset(1, 5, 5), new Attempt("query", 2, 0, 2));
        engine.queue().put(new Barrier(new JournalRow.Place(9, 9, 9), 0, List.of()));
        late.join();
        assertEquals("task attempt 1 is refused: attempt 2 has begun", end.get().getMessage());
        assertEquals(9, guard.engine().queue().next(2, 0).barrier().place().offset());
    }

    /** An engine that does nothing. */
    private record Idle(BarrierQueue queue) implements EngineGuard.Served {
        @Override
        public void stored(List<Changes> changes) {
            // It has no states.
        }

        @Override
        public boolean goesOnFrom(JournalOffset start) {
            return queue.goesOnFrom(start.offset());
        }

        @Override
        public void goOn(long attempt) {
            queue.begin(attempt);
        }

        @Override
        public void close() {
            // It has no thread.
        }
    }

    /** Spark may begin a task while it stops the query. Nobody would end the engine of this task. */
    @Test
    void aQueryThatHasStoppedGetsNoEngine() {
        EngineGuard guard = new EngineGuard((start, attempt) -> new Idle(new BarrierQueue(start, attempt.attempt())));
        guard.stop();
        Attempt attempt = new Attempt("query", 1, 0, 1);
        IllegalStateException error = assertThrows(
                IllegalStateException.class, () -> guard.begin(new JournalOffset(1, 0, 0), attempt));
        assertEquals("the query has stopped", error.getMessage());
        guard.beginNew(new JournalOffset(1, 0, 0), "query");
        assertEquals(-1, guard.end());
    }

    /** As long as a task has not reported the changes of a barrier as stored, it gets no further barrier. */
    @Test
    void nothingFollowsABarrierThatIsNotStored() throws InterruptedException {
        BarrierQueue queue = new BarrierQueue(new JournalOffset(1, 5, 5), 1);
        Changes changes = new Changes(0, BucketVersion.EMPTY, BucketVersion.EMPTY.after(7, 0, 0, false), List.of());
        queue.put(new Barrier(new JournalRow.Place(6, 6, 6), 0, List.of(changes)));
        queue.put(new Barrier(new JournalRow.Place(7, 7, 7), 0, List.of()));
        assertEquals(6, queue.next(1, 0).barrier().place().offset());
        assertThrows(IllegalStateException.class, () -> queue.next(1, 0));
        assertFalse(queue.goesOnFrom(6));
        assertEquals(List.of(changes), queue.stored(1));
        assertTrue(queue.goesOnFrom(6));
        assertEquals(7, queue.next(1, 0).barrier().place().offset());
    }
}
