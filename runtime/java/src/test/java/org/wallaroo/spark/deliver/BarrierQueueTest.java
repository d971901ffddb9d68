package org.wallaroo.spark.deliver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.wallaroo.spark.journal.JournalOffset;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.OperatorFailure;

@Timeout(60)
class BarrierQueueTest {
    private static final long LONG_NS = TimeUnit.SECONDS.toNanos(30);
    @Test
    void aBarrierWaitsForTheEgress() throws InterruptedException {
        BarrierQueue queue = new BarrierQueue(new JournalOffset(1, 5, 0), 1);
        queue.put(new Barrier(new JournalRow.Place(9, 1, 1), 3, List.of()));
        queue.acknowledge(2);
        assertNull(queue.next(1, 1));
        assertEquals(5, queue.last().offset());
        queue.acknowledge(3);
        assertEquals(9, queue.next(1, 1).barrier().place().offset());
        assertEquals(9, queue.last().offset());
    }

    /**
     * The error comes in a batch that has no barriers, after earlier batches have taken them all, however many each
     * takes.
     */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void anErrorComesAfterAllBarriers(long seed) throws InterruptedException {
        Random random = new Random(seed);
        int count = random.nextInt(6);
        BarrierQueue queue = new BarrierQueue(new JournalOffset(1, 5, 0), 1);
        for (int number = 1; number <= count; number++) {
            queue.put(new Barrier(new JournalRow.Place(5 + number, number, number), number, List.of()));
        }
        queue.endWith(OperatorFailure.of("R611", "reason", "test"));
        queue.acknowledge(count);
        int taken = 0;
        while (taken < count) {
            assertEquals(-1, queue.endOffset());
            int rows = 1 + random.nextInt(3);
            for (int row = 0; row < rows && queue.next(1, LONG_NS) != Work.OVER; row++) {
                taken++;
            }
            if (taken == count) {
                assertSame(Work.OVER, queue.next(1, LONG_NS), "the batch with the last barrier is to be committed");
            }
            queue.begin(1);
        }
        assertEquals(5 + count, queue.endOffset());
        OperatorFailure failure = assertThrows(OperatorFailure.class, () -> queue.next(1, LONG_NS));
        assertTrue(failure.getMessage().startsWith("R611"), failure.getMessage());
    }

    @Test
    void aBatchThatIsAwaitedEndsAtItsFirstBarrier() throws InterruptedException {
        BarrierQueue queue = new BarrierQueue(new JournalOffset(1, 5, 0), 1);
        queue.awaitBatch();
        assertNull(queue.next(1, 1)); // the time is over: the batch has no barrier yet
        queue.put(new Barrier(new JournalRow.Place(9, 1, 1), 0, List.of()));
        assertEquals(9, queue.next(1, Long.MAX_VALUE / 2).barrier().place().offset());
        queue.stored(1);
        assertNull(queue.next(1, Long.MAX_VALUE / 2));
        queue.begin(2);
        queue.put(new Barrier(new JournalRow.Place(12, 1, 1), 0, List.of()));
        assertEquals(12, queue.next(2, Long.MAX_VALUE / 2).barrier().place().offset());
    }

    @Test
    void aTaskFailsAsItsEngineDoes() {
        BarrierQueue queue = new BarrierQueue(new JournalOffset(1, 5, 0), 1);
        queue.fail(OperatorFailure.of("I901", "reason", "test"));
        queue.fail(new IllegalStateException("a consequence"));
        assertThrows(OperatorFailure.class, () -> queue.next(1, 1));
    }
}
