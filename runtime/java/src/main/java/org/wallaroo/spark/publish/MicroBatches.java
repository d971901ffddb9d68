package org.wallaroo.spark.publish;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/**
 * The function of {@code foreachBatch}: it puts questions, for which the driver program comes. Java never connects to that
 * program, so the program listens at no port.
 *
 * <p>Each micro-batch has two questions: may it run, and, with its rows, are they published.
 */
public final class MicroBatches implements VoidFunction2<Dataset<Row>, Long> {
    private static final long serialVersionUID = 1L;
    private static final ObjectMapper JSON = new ObjectMapper();

    private long number; // of the last question
    private String question; // null: none waits to be taken
    private String answer; // to the last question; null: none yet
    private boolean hasEnded;

    @Override
    public void call(Dataset<Row> frame, Long batch) throws InterruptedException {
        ask(batch, null);
        ask(batch, frame.collectAsList());
    }

    /**
     * Asks the driver program, and waits for its answer; a query that is stopped interrupts this.
     *
     * @param batch number of the micro-batch
     * @param rows what it came to, a text each; null: it has not run
     * @throws RuntimeException the driver program could not do it, or has ended
     */
    void ask(long batch, List<Row> rows) throws InterruptedException {
        List<String> texts = rows == null ? null : rows.stream().map(MicroBatches::text).toList();
        String failure = exchange(batch, write(texts));
        if (!failure.isEmpty()) {
            throw new RuntimeException(failure); // a plain one, which only carries what its text names
        }
    }

    private synchronized String exchange(long batch, String rows) throws InterruptedException {
        number++;
        question = "{\"number\": " + number + ", \"batch\": " + batch + ", \"rows\": " + rows + "}";
        answer = null;
        notifyAll();
        try {
            while (answer == null) {
                if (hasEnded) {
                    return "the driver program has ended before it published micro-batch " + batch;
                }
                wait();
            }
            return answer;
        } finally {
            question = null;
            number++; // an answer that comes now is to nothing
        }
    }

    /**
     * Returns the next question, once: an object in JSON with its {@code number}, the {@code batch} and its {@code rows}.
     *
     * @param milliseconds how long to wait for it
     * @return an empty text: there was none
     */
    public synchronized String next(long milliseconds) throws InterruptedException {
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(milliseconds);
        while (question == null && !hasEnded) {
            long left = until - System.nanoTime();
            if (left <= 0) {
                break;
            }
            TimeUnit.NANOSECONDS.timedWait(this, left);
        }
        String found = question == null ? "" : question;
        question = null;
        return found;
    }

    /**
     * Answers a question; does nothing when nobody waits for the answer any more.
     *
     * @param asked its number
     * @param failure why it could not be done; empty: it is done
     */
    public synchronized void answer(long asked, String failure) {
        if (asked == number) {
            answer = failure;
            notifyAll();
        }
    }

    /** Lets each question fail that has no answer: nobody comes for questions any more. */
    public synchronized void end() {
        hasEnded = true;
        notifyAll();
    }

    private static String text(Row row) {
        return new String(row.<byte[]>getAs(0), StandardCharsets.UTF_8);
    }

    private static String write(Object value) {
        try {
            return JSON.writeValueAsString(value);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException("rows cannot be written as JSON", error);
        }
    }
}
