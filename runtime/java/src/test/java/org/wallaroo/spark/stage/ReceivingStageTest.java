package org.wallaroo.spark.stage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ReceivingStageTest {
    private static final int BUCKETS = 4;

    /** Two stages may send by one port, as after a merge: results of one are not in order with those of the other. */
    @ParameterizedTest
    @CsvSource({"0, 1", "1, 1", "2, 3", "5, 2"})
    void whatComesFromEachStageByEachEntryHasANumberOfItsOwn(int block, int entries) {
        int end = block + entries * (block + 1);
        Set<Integer> numbers = new HashSet<>();
        for (int entry = 0; entry < entries; entry++) {
            for (int from = -1; from < block * BUCKETS; from++) {
                int number = ReceivingStage.origin(block, entry, BUCKETS, from);
                assertTrue(block * BUCKETS <= number && number < end * BUCKETS, () -> number + " is of another stage");
                numbers.add(number);
            }
        }
        assertEquals(entries * (block * BUCKETS + 1), numbers.size());
    }
}
