package org.wallaroo.spark.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.wallaroo.spark.worker.Suspect.Cause;

/** The table of {@code worker/poison.py}, line by line. */
class QuarantineTest {
    private final Quarantine quarantine = new Quarantine();

    private static Suspect suspect(long ordinal, Cause cause, boolean isShared) {
        return new Suspect(0, ordinal, cause, "it was ended by SIGKILL", isShared);
    }

    @Test
    void aMessageThatHungIsSkipped() {
        assertTrue(quarantine.learn(suspect(7, Cause.HUNG, true)));
        assertEquals("C509", quarantine.skips().get(0).getCode());
        assertFalse(quarantine.isAlone());
    }

    @Test
    void aCrashWithoutOthersInFlightIsCertain() {
        assertTrue(quarantine.learn(suspect(7, Cause.CRASHED, false)));
        assertEquals("C508", quarantine.skips().get(0).getCode());
    }

    @Test
    void aCrashWithOthersIsRepeatedAlone() {
        assertFalse(quarantine.learn(suspect(7, Cause.CRASHED, true)));
        assertTrue(quarantine.isAlone());
        assertTrue(quarantine.learn(suspect(7, Cause.CRASHED, true)));
    }

    @Test
    void aKilledMessageIsSkippedTheSecondTime() {
        assertFalse(quarantine.learn(suspect(7, Cause.KILLED, false)));
        assertTrue(quarantine.isAlone());
        assertTrue(quarantine.learn(suspect(7, Cause.KILLED, false)));
        assertFalse(quarantine.isAlone());
        assertThrows(IllegalStateException.class, () -> quarantine.learn(suspect(7, Cause.KILLED, false)));
    }

    @Test
    void stateThatEndsTheWorkerIsFoundCarefully() {
        Suspect outside = suspect(Suspect.OUTSIDE, Cause.CRASHED, false);
        assertFalse(quarantine.isBeyond(outside));
        quarantine.learn(outside);
        assertTrue(quarantine.isCareful());
        assertTrue(quarantine.isBeyond(outside));
        assertFalse(quarantine.isBeyond(suspect(Suspect.OUTSIDE, Cause.KILLED, false)));
    }
}
