package org.wallaroo.spark.sink;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.wallaroo.spark.query.Json;

/**
 * Passes the questions of a query's sink to the driver program in Python, which fetches and answers them. Java never
 * connects to that program, so the program does not listen at a port.
 *
 * <p>Each micro-batch has two questions: may it run, and are its rows published?
 */
public final class MicroBatches {
    private static final Map<String, MicroBatches> BY_NAME = new ConcurrentHashMap<>();

    private final String name = UUID.randomUUID().toString();
    private long number; // of the waiting question; larger than all earlier ones if no question waits
    private String question; // null if no question waits to be fetched
    private String answer; // to the waiting question; null if there is no answer yet
    private boolean hasEnded;

    /** Returns the name of the sink's format for Spark. */
    public static String sinkFormat() {
        return MicroBatchSink.class.getName();
    }

    /** Makes this object known to sinks, and returns the name under which they find it until {@link #end}. */
    public String open() {
        BY_NAME.put(name, this);
        return name;
    }

    /** Returns the object that the driver program has opened under a name and has not ended. */
    static MicroBatches named(String name) {
        MicroBatches found = BY_NAME.get(name);
        if (found == null) {
            throw new IllegalStateException("the driver program has ended its query");
        }
        return found;
    }

    /**
     * Asks the driver program, and waits for its answer. If the query is stopped, the wait is interrupted.
     *
     * @param batch number of the micro-batch
     * @param rows results of the micro-batch, a text each; null if it has not run
     * @throws RuntimeException if the answer is no, or the driver program has ended
     */
    void ask(long batch, List<byte[]> rows) {
        List<String> texts = rows == null ? null : rows.stream().map(MicroBatches::text).toList();
        String failure = exchange(batch, Json.write(texts));
        if (!failure.isEmpty()) {
            throw new RuntimeException(failure); // a plain exception, whose text says everything
        }
    }

    private synchronized String exchange(long batch, String rows) {
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
        } catch (InterruptedException error) {
            // Spark knows this exception as the stop of a query.
            throw new UncheckedIOException((IOException) new InterruptedIOException().initCause(error));
        } finally {
            question = null;
            number++; // an answer that comes now is too late
        }
    }

    /**
     * Returns the next question as a JSON object with its {@code number}, {@code batch} and {@code rows}.
     *
     * @param milliseconds how long to wait for a question
     * @return the question, which is returned only once, or an empty text if none came in time
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
     * Answers a question. The answer has no effect if nobody waits for it.
     *
     * @param asked number of the question
     * @param failure reason why the answer is no; empty if the answer is yes
     */
    public synchronized void answer(long asked, String failure) {
        if (asked == number) {
            answer = failure;
            notifyAll();
        }
    }

    /** Lets present and later questions fail, since the driver program no longer fetches questions. */
    public synchronized void end() {
        BY_NAME.remove(name);
        hasEnded = true;
        notifyAll();
    }

    private static String text(byte[] row) {
        return new String(row, StandardCharsets.UTF_8);
    }
}
