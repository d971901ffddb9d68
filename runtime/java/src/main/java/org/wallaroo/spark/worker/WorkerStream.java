package org.wallaroo.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;
import io.grpc.MethodDescriptor;
import java.util.Map;
import org.wallaroo.spark.rpc.ReplyQueue;
import wallaroo.worker.v1.WorkerOuterClass.Opening;
import wallaroo.worker.v1.WorkerOuterClass.Reply;
import wallaroo.worker.v1.WorkerOuterClass.Request;

/** A stream of gRPC to a worker, over which calls are made one after the other. It ends a worker that hangs. */
public final class WorkerStream {
    private static final int LOOKS = 8; // number of looks at the marks within a deadline
    private static final int LEAST_LOOKS = 4; // number of looks without progress before a deadline passes
    private static final int PATIENCE = 2; // number of deadlines for a call that may wait for another call
    private static final long MILLISECOND = 1_000_000;

    private final WorkerChannel channel;
    private final WorkerConnection connection;
    private final int generation;
    private final ReplyQueue<Request, Reply> replies;
    private final FlightFile flight;
    private final Opening opening;
    private final TimeLimit timeLimit;
    private long calls; // number of calls of the stream so far
    private int outputs; // number of outputs of the current call so far

    public WorkerStream(WorkerChannel channel, int number, MethodDescriptor<Request, Reply> method, Opening opening,
            TimeLimit timeLimit) {
        this.channel = channel;
        this.timeLimit = timeLimit;
        this.connection = channel.connection();
        WorkerConnection.Endpoint endpoint = connection.endpoint(number);
        this.generation = endpoint.generation();
        this.flight = new FlightFile(connection.directory());
        this.opening = opening.toBuilder().setInFlight(flight.path()).build();
        try {
            this.replies = new ReplyQueue<>(endpoint.channel(), method, channel.metadata(opening));
        } catch (RuntimeException error) {
            flight.close();
            throw error;
        }
        connection.opened(this);
    }

    /** Returns the file in which the worker notes the message in flight. */
    public FlightFile flight() {
        return flight;
    }

    /** Returns the message with which the first request opens the stream. */
    public Opening opening() {
        return opening;
    }

    /** Returns the number of the call that begins now, counted from 0 in each stream. */
    public long nextIndex() {
        return calls++;
    }

    /** Returns the number of the worker's process that serves the stream. */
    public int generation() {
        return generation;
    }

    public void send(Request request) {
        replies.send(request);
    }

    /**
     * Returns the next reply. Waits as long as the call makes progress.
     *
     * <p>A message in flight has less time if other messages of its call have hung. While no message is in flight, the
     * worker reads, writes, or waits for another call. Then the deadline begins at the last progress of any call.
     *
     * @param quarantine of the call
     * @throws WorkerGone if the stream broke, or missed its deadline
     */
    public Reply receive(Quarantine quarantine) {
        long own = timeLimit.ofMessage(quarantine);
        Reply reply = poll(own);
        Map<String, FlightFile.Mark> seen = Map.of();
        IdleTimer timer = null;
        long waited = 0;
        while (reply == null) {
            Map<String, FlightFile.Mark> marks = flight.look();
            long allowed = marks.get(flight.name()).message() != 0 ? own : timeLimit.ofCall();
            if (!marks.equals(seen)) {
                timeLimit.progressed(waited);
                seen = marks;
                timer = new IdleTimer(System.nanoTime(), allowed * MILLISECOND / LEAST_LOOKS);
            }
            waited = timer.look(System.nanoTime()) / MILLISECOND;
            if (waited > allowed) {
                giveUp(marks, allowed, waited > PATIENCE * allowed);
            }
            reply = poll(allowed);
        }
        timeLimit.progressed(waited);
        outputs = reply.hasOutput() ? outputs + 1 : reply.hasDone() || reply.hasReleased() ? 0 : outputs;
        return reply;
    }

    /**
     * Ends the process if one of its calls hangs, and raises the error of the stream whose call hangs.
     *
     * <p>One thread awaits the calls of a task in turn. If the awaited call has no message in flight, it may wait to
     * run alone, while a message of another call hangs. Each task first gets time to end its own hanging calls.
     *
     * @param marks unchanged marks of this stream and of the streams that it may wait for
     * @param allowed milliseconds in which there was no progress
     * @param isPatienceOver whether to wait no longer for other tasks to end their calls
     */
    private void giveUp(Map<String, FlightFile.Mark> marks, long allowed, boolean isPatienceOver) {
        FlightFile.Mark own = marks.get(flight.name());
        if (own.message() != 0) {
            throw hung(own, allowed);
        }
        for (WorkerStream stream : connection.streams(generation)) {
            FlightFile.Mark mark = marks.get(stream.flight.name());
            if (mark != null && mark.message() != 0 && (isPatienceOver || stream.timeLimit == timeLimit)) {
                throw stream.hung(mark, allowed);
            }
        }
        if (isPatienceOver || marks.values().stream().allMatch(mark -> mark.message() == 0)) {
            if (outputs > 0) {
                throw channel.brokeRules("stage \"" + opening.getStage().getId() + "\", field done: missing for "
                        + Suspect.seconds(allowed) + " s after " + outputs + " outputs");
            }
            throw hung(own, allowed);
        }
    }

    private Reply poll(long allowed) {
        try {
            return replies.poll(Math.max(1, allowed / LOOKS));
        } catch (ReplyQueue.StreamEnded error) {
            connection.checkBroken(error);
            throw WorkerGone.ended(generation, connection.supervisor().ending(generation), error);
        }
    }

    private WorkerGone hung(FlightFile.Mark mark, long allowed) {
        String seconds = Suspect.seconds(allowed);
        boolean isCertain = mark.message() != 0;
        connection.supervisor().kill(generation, "it gave no answer within " + seconds + " s", isCertain);
        JsonNode ending = connection.supervisor().ending(generation);
        if (ending != null && ending.path("killed_for").asText().isEmpty()) {
            return WorkerGone.ended(generation, ending, new IllegalStateException("it ended while it was awaited"));
        }
        if (!isCertain) {
            channel.missedDeadline(seconds, opening.getStage().getId());
            return WorkerGone.hung(generation, ending, flight, null);
        }
        Suspect suspect =
                new Suspect(mark.call(), mark.message() - 1, Suspect.Cause.HUNG, seconds, false, flight.note());
        return WorkerGone.hung(generation, ending, flight, suspect);
    }

    public void close() {
        replies.cancel();
        connection.closed(this);
        flight.close();
    }
}
