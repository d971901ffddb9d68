package org.wallaroo.spark.sink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(60)
class MicroBatchesTest {
    private static final long LONG_MS = 30_000;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final MicroBatches batches = new MicroBatches();

    private CompletableFuture<Void> asking(long batch, List<byte[]> rows) {
        return CompletableFuture.runAsync(() -> batches.ask(batch, rows));
    }

    private JsonNode taken() throws Exception {
        return JSON.readTree(batches.next(LONG_MS));
    }

    private static byte[] row(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    @Test
    void rowsCrossAsTextsInOrder() throws Exception {
        CompletableFuture<Void> asked = asking(7, List.of(row("é\"\n"), row("{}")));
        JsonNode question = taken();
        assertEquals("[\"é\\\"\\n\",\"{}\"]", question.get("rows").toString());
        assertEquals(7, question.get("batch").asLong());
        batches.answer(question.get("number").asLong(), "");
        asked.get();
    }

    @Test
    void nothingIsAskedForAWhile() throws Exception {
        assertEquals("", batches.next(1));
    }

    /** Each question is fetched once, and gets its own answer, even if answers to earlier questions come late. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void eachQuestionHasItsAnswer(long seed) throws Exception {
        Random random = new Random(seed);
        List<Long> numbers = new ArrayList<>(List.of(-1L));
        for (int batch = 0; batch < 20; batch++) {
            CompletableFuture<Void> asked = asking(batch, random.nextBoolean() ? null : List.of());
            JsonNode question = taken();
            assertEquals(batch, question.get("batch").asLong());
            assertEquals("", batches.next(1), "it is taken once");
            for (int late = random.nextInt(3); late > 0; late--) {
                batches.answer(numbers.get(random.nextInt(numbers.size())), "late");
            }
            String failure = random.nextBoolean() ? "" : "failure " + batch;
            long number = question.get("number").asLong();
            batches.answer(number, failure);
            numbers.add(number);
            if (failure.isEmpty()) {
                asked.get();
                continue;
            }
            ExecutionException error = assertThrows(ExecutionException.class, asked::get);
            assertEquals(failure, error.getCause().getMessage());
        }
    }

    @Test
    void aStoppedQueryWaitsForNoAnswer() throws Exception {
        AtomicReference<Throwable> seen = new AtomicReference<>();
        Thread query = new Thread(() -> {
            try {
                batches.ask(1, null);
            } catch (RuntimeException error) {
                seen.set(error);
            }
        });
        query.start();
        long number = taken().get("number").asLong();
        query.interrupt();
        query.join(LONG_MS);
        assertTrue(seen.get().getCause() instanceof InterruptedIOException, String.valueOf(seen.get()));
        batches.answer(number, "late");
        assertEquals("", batches.next(1));
    }

    @Test
    void anEndedDriverFailsWhatItHasNotAnswered() throws Exception {
        CompletableFuture<Void> taken = asking(1, null);
        taken();
        batches.end();
        for (CompletableFuture<Void> asked : List.of(taken, asking(2, List.of()))) {
            ExecutionException error = assertThrows(ExecutionException.class, asked::get);
            assertTrue(error.getCause().getMessage().startsWith("the driver program has ended"), error.toString());
        }
        assertEquals("", batches.next(LONG_MS));
    }
}
