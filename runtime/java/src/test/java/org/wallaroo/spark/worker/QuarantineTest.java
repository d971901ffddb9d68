package org.wallaroo.spark.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.wallaroo.spark.worker.Suspect.Cause;
import wallaroo.worker.v1.WorkerOuterClass.Skip;

/** Compares drawn failures of a call with the table of {@link Quarantine}. */
class QuarantineTest {
    private final Quarantine quarantine = new Quarantine();

    private static Suspect suspect(long ordinal, Cause cause, boolean isShared) {
        return new Suspect(0, ordinal, cause, "it was ended by SIGKILL", isShared, "");
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

    /** The column "skipped" of the table, for a message that was in flight. */
    private static boolean isSkipped(Cause cause, boolean isShared, boolean isAlone, boolean isAgain) {
        return switch (cause) {
            case HUNG -> true;
            case CRASHED -> isAlone || !isShared;
            case KILLED -> isAgain;
        };
    }

    @RepeatedTest(300)
    void drawnHistoriesFollowTheTable(RepetitionInfo repetition) {
        Random random = new Random(repetition.getCurrentRepetition());
        List<Long> skipped = new ArrayList<>();
        long killed = -1;
        boolean isAlone = false;
        boolean isCareful = false;
        for (int events = random.nextInt(9); events > 0; events--) {
            Cause cause = Cause.values()[random.nextInt(3)];
            long ordinal = List.of(0L, 1L, Suspect.OUTSIDE).get(random.nextInt(3));
            boolean isShared = random.nextBoolean();
            Suspect suspect = suspect(ordinal, cause, isShared);
            if (ordinal == Suspect.OUTSIDE) {
                boolean isHopeless = cause == Cause.HUNG || cause == Cause.CRASHED && (isAlone || !isShared);
                assertEquals(isCareful && isHopeless, quarantine.isBeyond(suspect));
                isCareful |= cause != Cause.KILLED;
                isAlone = isShared && cause == Cause.CRASHED;
                assertEquals(cause == Cause.HUNG, quarantine.learn(suspect));
            } else if (skipped.contains(ordinal)) {
                assertThrows(IllegalStateException.class, () -> quarantine.learn(suspect));
            } else {
                boolean isSkipped = isSkipped(cause, isShared, isAlone, killed == ordinal);
                assertEquals(isSkipped, quarantine.learn(suspect));
                isAlone = !isSkipped;
                killed = cause == Cause.KILLED && !isSkipped ? ordinal : -1;
                if (isSkipped) {
                    skipped.add(ordinal);
                }
            }
            assertEquals(skipped, quarantine.skips().stream().map(Skip::getOrdinal).toList());
            assertEquals(List.of(isAlone, isCareful), List.of(quarantine.isAlone(), quarantine.isCareful()));
        }
    }

    @Test
    void aMessageMayTakeLessWhereOthersOfItsCallHaveHung() {
        quarantine.learn(suspect(1, Cause.CRASHED, false));
        assertEquals(8000, quarantine.milliseconds(8000, 100));
        quarantine.learn(suspect(7, Cause.HUNG, false));
        assertEquals(4000, quarantine.milliseconds(8000, 100));
        assertEquals(6000, quarantine.milliseconds(8000, 1500));
        assertEquals(8000, quarantine.milliseconds(8000, 3000));
        assertEquals(500, quarantine.milliseconds(500, 0));
        for (int hung = 2; hung < 100; hung++) {
            quarantine.learn(suspect(7 + hung, Cause.HUNG, false));
            assertEquals(Math.max(1000, 8000 >> Math.min(hung, 30)), quarantine.milliseconds(8000, 100));
        }
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
