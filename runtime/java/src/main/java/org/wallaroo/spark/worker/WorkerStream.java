package org.wallaroo.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;
import com.google.protobuf.MessageLite;
import io.grpc.MethodDescriptor;
import java.util.Map;
import org.wallaroo.spark.rpc.ReplyQueue;
import wallaroo.worker.v1.WorkerOuterClass.Opening;
import wallaroo.worker.v1.WorkerOuterClass.ProcessReply;
import wallaroo.worker.v1.WorkerOuterClass.StateReply;

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
    private final String stage;
    private final Deadline deadline;
    private int outputs; // of the call that is not done

    public WorkerStream(
            WorkerChannel channel, int number, MethodDescriptor<Q, R> method, Opening opening, Deadline deadline) {
        this.channel = channel;
        this.stage = opening.getStage().getId();
        this.deadline = deadline;
        this.flight = new FlightFile(channel.directory());
        try {
            this.replies = new ReplyQueue<>(channel.endpoint(number), method, channel.metadata(opening));
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
     * <p>A message in flight may take less where others of its call have hung. While none is in flight, the worker reads,
     * writes, or waits for another call: for that it has the whole time.
     *
     * @param quarantine of the call
     * @throws WorkerGone the stream broke, or missed its deadline
     */
    public R receive(Quarantine quarantine) {
        long own = deadline.of(quarantine);
        R reply = poll(own);
        FlightFile.Mark seen = null;
        IdleTimer timer = null;
        Map<WorkerStream<?, ?>, FlightFile.Mark> others = Map.of();
        long waited = 0;
        while (reply == null) {
            FlightFile.Mark mark = flight.read();
            long allowed = mark.message() != 0 ? own : deadline.whole();
            if (!mark.equals(seen)) {
                deadline.progressed(waited);
                seen = mark;
                timer = new IdleTimer(System.nanoTime(), allowed * MILLISECOND / LEAST_LOOKS);
                others = channel.inFlight(this);
            }
            waited = timer.look(System.nanoTime()) / MILLISECOND;
            if (waited > allowed) {
                giveUp(mark, others, allowed, waited > PATIENCE * allowed);
            }
            reply = poll(allowed);
        }
        deadline.progressed(waited);
        outputs = outputs(reply);
        return reply;
    }

    private int outputs(R reply) {
        if (reply instanceof ProcessReply data) {
            return data.hasOutput() ? outputs + 1 : data.hasDone() ? 0 : outputs;
        }
        StateReply state = (StateReply) reply;
        return state.hasOutput() ? outputs + 1 : state.hasDone() || state.hasReleased() ? 0 : outputs;
    }

    /**
     * Ends the process that gives no answer.
     *
     * <p>One thread awaits the calls of a task in turn. Where the awaited one has no message in flight, it may wait for
     * another one: to run alone, while a message of that one hangs.
     *
     * @param mark of this stream
     * @param others that had a message in flight when this stream began to wait
     * @param allowed for how many milliseconds there was no progress
     * @param isPatienceOver whether to wait no longer for others that make progress
     */
    private void giveUp(
            FlightFile.Mark mark, Map<WorkerStream<?, ?>, FlightFile.Mark> others, long allowed,
            boolean isPatienceOver) {
        if (mark.message() != 0) {
            throw hung(mark, allowed);
        }
        others.forEach((stream, before) -> {
            if (before.equals(stream.flight.read())) {
                throw stream.hung(before, allowed);
            }
        });
        if (others.isEmpty() || isPatienceOver) {
            if (outputs > 0) {
                throw channel.brokeRules("stage \"" + stage + "\", field done: missing for " + Suspect.seconds(allowed)
                        + " s after " + outputs + " outputs");
            }
            throw hung(mark, allowed);
        }
    }

    private R poll(long allowed) {
        try {
            return replies.poll(Math.max(1, allowed / LOOKS));
        } catch (ReplyQueue.StreamEnded error) {
            channel.checkBroken(error);
            throw WorkerGone.ended(generation, channel.supervisor().ending(generation), error);
        }
    }

    private WorkerGone hung(FlightFile.Mark mark, long allowed) {
        String seconds = Suspect.seconds(allowed);
        boolean isCertain = mark.message() != 0;
        channel.supervisor().kill(generation, "it gave no answer within " + seconds + " s", isCertain);
        JsonNode ending = channel.supervisor().ending(generation);
        if (ending != null && ending.path("killed_for").asText().isEmpty()) {
            return WorkerGone.ended(generation, ending, new IllegalStateException("it ended while it was awaited"));
        }
        if (!isCertain) {
            channel.missedDeadline(seconds, stage);
            return WorkerGone.hung(generation, ending, flight, null);
        }
        Suspect suspect =
                new Suspect(mark.call(), mark.message() - 1, Suspect.Cause.HUNG, seconds, false, flight.note());
        return WorkerGone.hung(generation, ending, flight, suspect);
    }

    public void close() {
        replies.cancel();
        channel.closed(this);
        flight.close();
    }
}
