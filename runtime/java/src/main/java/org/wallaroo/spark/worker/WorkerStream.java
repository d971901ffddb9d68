package org.wallaroo.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;
import com.google.protobuf.MessageLite;
import io.grpc.MethodDescriptor;
import java.util.Map;
import org.wallaroo.spark.rpc.ReplyQueue;

/**
 * One open call to a worker, with a deadline.
 *
 * @param <Q> type of the requests
 * @param <R> type of the replies
 */
public final class WorkerStream<Q extends MessageLite, R extends MessageLite> {
    private static final int LOOKS = 8; // within the time of a deadline
    private static final int LEAST_LOOKS = 4; // without progress, before it passes
    private static final int PATIENCE = 2; // times the deadline, for a call in whose way another one may be
    private static final long MILLISECOND = 1_000_000;

    private final WorkerChannel channel;
    private final int generation;
    private final ReplyQueue<Q, R> replies;
    private final FlightFile flight;
    private final long deadlineMs;

    public WorkerStream(WorkerChannel channel, int number, MethodDescriptor<Q, R> method, long deadlineMs) {
        this.channel = channel;
        this.deadlineMs = deadlineMs;
        this.flight = new FlightFile(channel.directory());
        try {
            this.replies = new ReplyQueue<>(channel.endpoint(number), method);
        } catch (RuntimeException error) {
            flight.close();
            throw error;
        }
        this.generation = channel.generation();
        channel.open(this);
    }

    /** Returns the file in which the worker notes the message in flight. */
    public FlightFile flight() {
        return flight;
    }

    /** Returns which process of the worker it goes to. */
    public int generation() {
        return generation;
    }

    public void send(Q request) {
        replies.send(request);
    }

    /**
     * Returns the next reply; waits as long as the call makes progress.
     *
     * @throws WorkerGone the stream broke, or missed its deadline
     */
    public R receive() {
        R reply = poll();
        if (reply != null) {
            return reply;
        }
        IdleTimer timer = timer();
        FlightFile.Mark seen = flight.read();
        Map<WorkerStream<?, ?>, FlightFile.Mark> others = channel.inFlight(this);
        while ((reply = poll()) == null) {
            FlightFile.Mark mark = flight.read();
            long waited = timer.look(System.nanoTime());
            if (!mark.equals(seen)) {
                seen = mark;
                timer = timer();
                others = channel.inFlight(this);
            } else if (waited > deadlineMs * MILLISECOND) {
                giveUp(mark, others, waited > PATIENCE * deadlineMs * MILLISECOND);
            }
        }
        return reply;
    }

    private IdleTimer timer() {
        return new IdleTimer(System.nanoTime(), deadlineMs * MILLISECOND / LEAST_LOOKS);
    }

    /**
     * Ends the process that gives no answer.
     *
     * <p>One thread awaits the calls of a task in turn. Where the awaited one has no message in flight, it may wait for
     * another one: to run alone, while a message of that one hangs.
     *
     * @param mark of this stream
     * @param others that had a message in flight when this stream began to wait
     * @param isPatienceOver whether to wait no longer for others that make progress
     */
    private void giveUp(
            FlightFile.Mark mark, Map<WorkerStream<?, ?>, FlightFile.Mark> others, boolean isPatienceOver) {
        if (mark.message() != 0) {
            throw hung(mark);
        }
        others.forEach((stream, before) -> {
            if (before.equals(stream.flight.read())) {
                throw stream.hung(before);
            }
        });
        if (others.isEmpty() || isPatienceOver) {
            throw hung(mark);
        }
    }

    private R poll() {
        try {
            return replies.poll(Math.max(1, deadlineMs / LOOKS));
        } catch (ReplyQueue.StreamEnded error) {
            throw WorkerGone.ended(generation, channel.supervisor().ending(generation), error);
        }
    }

    private WorkerGone hung(FlightFile.Mark mark) {
        String seconds = Suspect.seconds(deadlineMs);
        boolean isCertain = mark.message() != 0;
        channel.supervisor().kill(generation, "it gave no answer within " + seconds + " s", isCertain);
        JsonNode ending = channel.supervisor().ending(generation);
        if (ending != null && ending.path("killed_for").asText().isEmpty()) {
            return WorkerGone.ended(generation, ending, new IllegalStateException("it ended while it was awaited"));
        }
        if (!isCertain) {
            channel.missedDeadline(seconds);
            return WorkerGone.hung(generation, flight.name(), null);
        }
        Suspect suspect = new Suspect(mark.call(), mark.message() - 1, Suspect.Cause.HUNG, seconds, false);
        return WorkerGone.hung(generation, flight.name(), suspect);
    }

    public void close() {
        replies.cancel();
        channel.closed(this);
        flight.close();
    }
}
