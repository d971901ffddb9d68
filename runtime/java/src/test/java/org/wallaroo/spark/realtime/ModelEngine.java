package org.wallaroo.spark.realtime;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** Changes states in calls as an engine does, and compares what it sees with a store that is never late. */
final class ModelEngine implements Gate.Served {
    private static final int BUCKETS = 3;

    private final Random random;
    private final Handover handover;
    private final AheadStore store;
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
        handover = new Handover(start, attempt.attempt());
        store = new AheadStore(handover);
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
            handover.end();
        } catch (AssertionError error) {
            wrong = error;
            handover.fail(new IllegalStateException(error));
        } catch (RuntimeException error) {
            handover.fail(error);
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
            handover.acknowledge(offset);
        }
        handover.put(new Barrier(new Parcel.Place(offset, offset, offset), offset, store.bind()));
    }

    /** Returns what a store is to have that got all barriers up to one. */
    PlainStore at(long place) {
        synchronized (atBarrier) {
            return atBarrier.get(place);
        }
    }

    /** Says whether it has ended by itself. */
    boolean isBroken() {
        return isBroken;
    }

    boolean isClosed() {
        return isClosed;
    }

    @Override
    public Handover handover() {
        return handover;
    }

    @Override
    public void stored(List<Changes> changes) {
        store.stored(changes);
    }

    @Override
    public boolean goesOnFrom(JournalOffset start) {
        return !isClosed && handover.goesOnFrom(start.offset());
    }

    @Override
    public void goOn(long attempt) {
        handover.begin(attempt);
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
