package org.wallaroo.spark.microbatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.worker.WorkerConnection;

class TaskAccountTest {
    private static final long NOW = 1_800_000_000_000L;

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void eachRecordHasTheAgeOfItsTimeTo3Percent(long seed) throws Exception {
        Random random = new Random(seed);
        TaskAccount account = new TaskAccount(new Attempt("q", 5, 0, 1), 0);
        List<Long> exact = new ArrayList<>();
        for (int count = 1 + random.nextInt(500); count > 0; count--) {
            long age = random.nextLong(1L << random.nextInt(1, 41)) - 1000;
            exact.add(NOW - age);
            account.arrived(NOW - age, NOW, 1);
        }
        List<Long> counted = new ArrayList<>();
        JsonNode arrived = new ObjectMapper().readTree(account.json()).get("arrived");
        arrived.properties().forEach(each -> counted.addAll(
                Collections.nCopies(each.getValue().asInt(), Long.valueOf(each.getKey()))));
        Collections.sort(exact);
        Collections.sort(counted);
        assertEquals(exact.size(), counted.size());
        for (int i = 0; i < exact.size(); i++) {
            long after = exact.get(i) - counted.get(i);
            assertTrue(0 <= after && after <= Math.abs(NOW - exact.get(i)) / 32, exact.get(i) + " " + counted.get(i));
        }
        assertTrue(arrived.size() <= 64 * 2 * 31, "however many there are");
    }

    /** If an attempt is aborted, the account of the next attempt reports the end of the worker's process. */
    @Test
    void theEndOfAWorkerIsReportedOnce() {
        WorkerConnection.takeEndings();
        WorkerConnection.giveEndings(Map.of("driver, process 7", "it was killed"));
        for (int attempt = 0; attempt < 3; attempt++) {
            TaskAccount account = new TaskAccount(new Attempt("q", 5, 0, attempt), 0);
            assertTrue(account.json().contains("\"endings\":{\"driver, process 7\":\"it was killed\"}"));
            LevelOutput output = new LevelOutput(Settings.of(
                    "{\"levels\": [[], []], \"later_ports\": [[], []], \"targets\": [0], \"controls_precede\": false}"), 0,
                    new Attempt("q", 5, 0, attempt), account, false);
            output.abort();
        }
        TaskAccount last = new TaskAccount(new Attempt("q", 5, 0, 3), 0);
        assertTrue(last.json().contains("process 7"));
        assertTrue(new TaskAccount(new Attempt("q", 5, 1, 4), 0).json().contains("\"endings\":{}"));
    }
}
