package org.wallaroo.spark.realtime;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.wallaroo.spark.journal.JournalOffset;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;

class BatchEndTest {
    private final Settings settings = Settings.of("{\"journal\": \"batch end\"}");

    private static JournalOffset at(long offset) {
        return new JournalOffset(1, offset, 0);
    }

    @Test
    void anOffsetThatIsCoveredPasses() {
        BatchEnd.begin(settings);
        BatchEnd.cover(settings.text(), 90);
        BatchEnd.check(settings, at(10), at(90));
    }

    @Test
    void aBatchWithoutRowsEndsWhereItBegan() {
        BatchEnd.begin(settings);
        BatchEnd.cover(settings.text(), BatchEnd.NOTHING);
        BatchEnd.check(settings, at(10), at(10));
    }

    @Test
    void anOffsetPastWhatIsCoveredIsRefused() {
        BatchEnd.begin(settings);
        BatchEnd.cover(settings.text(), 50);
        OperatorFailure failure =
                assertThrows(OperatorFailure.class, () -> BatchEnd.check(settings, at(10), at(90)));
        assertTrue(failure.getMessage().startsWith("R756"), failure.getMessage());
    }

    @Test
    void anOffsetOfABatchWithoutRowsIsRefused() {
        BatchEnd.begin(settings);
        BatchEnd.cover(settings.text(), BatchEnd.NOTHING);
        assertThrows(OperatorFailure.class, () -> BatchEnd.check(settings, at(10), at(90)));
    }

    @Test
    void theCoverOfAnEarlierBatchCountsNoMore() {
        BatchEnd.begin(settings);
        BatchEnd.cover(settings.text(), 90);
        BatchEnd.begin(settings);
        assertThrows(OperatorFailure.class, () -> BatchEnd.check(settings, at(10), at(90)));
    }
}
