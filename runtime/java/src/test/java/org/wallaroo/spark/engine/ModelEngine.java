package org.wallaroo.spark.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.wallaroo.spark.bucket.BucketVersion;
import org.wallaroo.spark.bucket.Changes;
import org.wallaroo.spark.bucket.PlainStore;
import org.wallaroo.spark.deliver.Barrier;
import org.wallaroo.spark.deliver.BarrierQueue;
import org.wallaroo.spark.deliver.EngineStore;
import org.wallaroo.spark.journal.JournalOffset;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Attempt;

/**
 * Changes states as an engine does, and compares the states that it reads with a store that gets each change at once.
 */
final class ModelEngine implements EngineGuard.Served {
    private static final int BUCKETS = 3;

    private final Random random;
    private final BarrierQueue queue;
    private final EngineStore store;
    private final PlainStore expected;
    private final Map<Long, PlainStore> atBarrier = new HashMap<>();
    private final Thread thread = new Thread(this::run);
    private final long end;
    private final int failing; // of so many rounds one fails
    private long offset;
    private AssertionError wrong;
    private volatile boolean isClosed;
    private volatile boolean isBroken;

    ModelEngine(Random random, PlainStore begin, JournalOffset start, Attempt attempt, long end, int failing) {
        this.random = random;
        this.end = end;
        this.failing = failing;
        queue = new BarrierQueue(start, attempt.attempt());
        store = new EngineStore(queue, attempt.batch() == 0);
        expected = begin.copy();
        offset = start.offset();
        atBarrier.put(offset, begin);
        thread.start();
    }

    private void run() {
        try {
            while (offset < end) {
                round();
            }
            queue.end();
        } catch (AssertionError error) {
            wrong = error;
            queue.fail(new IllegalStateException(error));
        } catch (RuntimeException error) {
            queue.fail(error);
        }
    }

    private void round() {
        for (int call = random.nextInt(4); call >= 0; call--) {
            int bucket = random.nextInt(BUCKETS);
            BucketVersion version = store.version(bucket);
            assertEquals(expected.version(bucket), version);
            if (random.nextInt(3) == 0) { // a worker that has begun again
                assertEquals(
                        PlainStore.texts(expected.log(bucket, version)), PlainStore.texts(store.log(bucket, version)));
            }
            List<byte[]> changes = new ArrayList<>();
            for (int count = random.nextInt(3); count > 0; count--) {
                changes.add(("change " + random.nextInt()).getBytes());
            }
            BucketVersion after = version.after(random.nextLong(), changes.size(), 10, random.nextInt(5) == 0);
            store.store(bucket, version, after, changes);
            expected.store(bucket, version, after, changes);
        }
        if (random.nextInt(failing) == 0) {
            isBroken = true;
            throw new IllegalStateException("a worker ended for good");
        }
        offset++;
        synchronized (atBarrier) {
            atBarrier.put(offset, expected.copy());
        }
        if (offset % 4 == 0 || offset == end || random.nextInt(3) > 0) {
            queue.acknowledge(offset);
        }
        queue.put(new Barrier(new JournalRow.Place(offset, offset, offset), offset, store.bind()));
    }

    /** Returns the expected content of a store that has got all barriers up to a place. */
    PlainStore at(long place) {
        synchronized (atBarrier) {
            return atBarrier.get(place);
        }
    }

    /** Says whether the engine has ended with a drawn failure. */
    boolean isBroken() {
        return isBroken;
    }

    boolean isClosed() {
        return isClosed;
    }

    @Override
    public BarrierQueue queue() {
        return queue;
    }

    @Override
    public void stored(List<Changes> changes) {
        store.stored(changes);
    }

    @Override
    public boolean goesOnFrom(JournalOffset start) {
        return !isClosed && queue.goesOnFrom(start.offset());
    }

    @Override
    public void goOn(long attempt) {
        queue.begin(attempt);
    }

    @Override
    public void close() {
        isClosed = true;
        thread.interrupt();
        try {
            thread.join();
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
        if (wrong != null) {
            throw wrong;
        }
    }
}
