package org.wallaroo.spark.realtime;

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

@Timeout(60)
class HandoverTest {
    private static final long LONG_NS = TimeUnit.SECONDS.toNanos(30);
    @Test
    void aBarrierWaitsForTheEgress() throws InterruptedException {
        Handover handover = new Handover(new JournalOffset(1, 5, 0), 1);
        handover.put(new Barrier(new Parcel.Place(9, 1, 1), 3, List.of()));
        handover.acknowledge(2);
        assertNull(handover.next(1, 1));
        assertEquals(5, handover.last().offset());
        handover.acknowledge(3);
        assertEquals(9, handover.next(1, 1).barrier().place().offset());
        assertEquals(9, handover.last().offset());
    }

    /** Whatever a batch takes of the barriers, all of them are taken before the error comes, in a batch of its own. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void anErrorComesAfterAllBarriers(long seed) throws InterruptedException {
        Random random = new Random(seed);
        int count = random.nextInt(6);
        Handover handover = new Handover(new JournalOffset(1, 5, 0), 1);
        for (int number = 1; number <= count; number++) {
            handover.put(new Barrier(new Parcel.Place(5 + number, number, number), number, List.of()));
        }
        handover.endWith(OperatorFailure.of("R611", "reason", "test"));
        handover.acknowledge(count);
        int taken = 0;
        while (taken < count) {
            assertEquals(-1, handover.endOffset());
            int rows = 1 + random.nextInt(3);
            for (int row = 0; row < rows && handover.next(1, LONG_NS) != Work.OVER; row++) {
                taken++;
            }
            if (taken == count) {
                assertSame(Work.OVER, handover.next(1, LONG_NS), "the batch with the last barrier is to be committed");
            }
            handover.begin(1);
        }
        assertEquals(5 + count, handover.endOffset());
        OperatorFailure failure = assertThrows(OperatorFailure.class, () -> handover.next(1, LONG_NS));
        assertTrue(failure.getMessage().startsWith("R611"), failure.getMessage());
    }

    @Test
    void aTaskFailsAsItsEngineDoes() {
        Handover handover = new Handover(new JournalOffset(1, 5, 0), 1);
        handover.fail(OperatorFailure.of("I901", "reason", "test"));
        handover.fail(new IllegalStateException("a consequence"));
        assertThrows(OperatorFailure.class, () -> handover.next(1, 1));
    }
}
