package org.wallaroo.spark.journal;

import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.MethodDescriptor;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.rpc.Channels;
import org.wallaroo.spark.rpc.LastingCall;
import org.wallaroo.spark.rpc.ReplyQueue;
import org.wallaroo.spark.rpc.ServiceFailure;
import wallaroo.service.v1.Service.Position;
import wallaroo.service.v1.Service.ReadRequest;

/**
 * Knows the position up to which the engine of a query in real-time mode may read the journal. The gateway reports each
 * new position, so that waiting costs nothing.
 *
 * <p>Each query in this virtual machine has one head, which keeps the last position while the gateway is away. If the
 * gateway sends the journal, the position is the end of the part that has arrived.
 */
public final class JournalHead {
    static final MethodDescriptor<ReadRequest, Position> FOLLOW = Channels.method(
            "wallaroo.service.v1.JournalService/Follow", MethodType.SERVER_STREAMING, ReadRequest.parser(),
            Position.parser());
    private static final Map<String, JournalHead> OPEN = new ConcurrentHashMap<>();
    private static final int MOST_MOVES = 10_000;

    private final Settings settings;
    private final ManagedChannel channel;
    private final LastingCall<ReadRequest, Position> call; // null if a reader reports the position
    private Object reader; // the tail that reports the position; null if the gateway reports it
    private final Deque<Move> moves = new ArrayDeque<>(); // of frames that the engine has not processed
    private boolean isTimed; // whether the next move has a time: the first one may be old
    private long end;
    private boolean isEnding;
    private boolean isClosed;
    private RuntimeException failure;

    private record Move(long offset, long timeMs) {}

    private JournalHead(Settings settings, JournalOffset start) {
        this.settings = settings;
        this.channel = Channels.service(settings.gateway());
        this.call = settings.journal().isEmpty() ? null : new LastingCall<>(channel, FOLLOW, new Following(start));
        if (call != null) {
            call.open();
        }
    }

    /**
     * Returns the head of a query. The first call begins to follow the journal.
     *
     * @param settings of the query
     * @param start names the journal
     */
    static JournalHead of(Settings settings, JournalOffset start) {
        return OPEN.computeIfAbsent(settings.text(), text -> new JournalHead(settings, start));
    }

    /** Ends the current batch of a query now, and each later batch as it begins. No effect before the engine begins. */
    public static void endBatches(String settings) {
        OPEN.computeIfPresent(settings, (text, head) -> head.ending());
    }

    /** Closes the head of a query for good. A task that begins later gets the closed head and fails. */
    public static void close(Settings settings) {
        OPEN.computeIfPresent(settings.text(), (text, head) -> head.closed());
    }

    /**
     * Returns the time at which the journal became readable up to an offset, in milliseconds since 1970; 0 if it is not
     * known, as for messages that were there before the query.
     *
     * @param settings of the query
     * @param offset not before that of an earlier call
     */
    public static long readableMs(String settings, long offset) {
        JournalHead head = OPEN.get(settings);
        return head == null ? 0 : head.timeOf(offset);
    }

    private synchronized long timeOf(long offset) {
        while (!moves.isEmpty() && moves.getFirst().offset() < offset) {
            moves.removeFirst();
        }
        return moves.isEmpty() ? 0 : moves.getFirst().timeMs();
    }

    private void note(long offset) {
        boolean hasRoom = moves.size() < MOST_MOVES;
        if (hasRoom) {
            moves.add(new Move(offset, isTimed ? System.currentTimeMillis() : 0));
        }
        isTimed = hasRoom;
    }

    /** Returns the channel to the gateway. */
    ManagedChannel channel() {
        return channel;
    }

    private final class Following implements LastingCall.Caller<ReadRequest, Position> {
        private final String journal;

        private Following(JournalOffset start) {
            journal = JournalOffset.hex(start.journal());
        }

        @Override
        public ReadRequest request() {
            return ReadRequest.newBuilder().setEpoch(settings.gatewayEpoch()).setJournal(journal).build();
        }

        @Override
        public int ahead() {
            return Channels.REPLIES;
        }

        @Override
        public void take(Position position) {
            call.ask(1);
            moveTo(null, position.getOffset());
        }

        @Override
        public void fail(ReplyQueue.StreamEnded why) {
            JournalHead.this.fail(null, ServiceFailure.of("gateway", settings.gateway(), why));
        }
    }

    /**
     * Lets a new reader report the position from now on, instead of an earlier reader. The position moves to the offset
     * at which the new reader begins. Only for a journal that a remote gateway sends.
     */
    synchronized void feed(Object begun, long offset) {
        reader = begun;
        moves.clear();
        isTimed = false;
        end = offset;
        failure = null;
    }

    /** Moves the position forward. {@code from} is the reader that reports the position, or null for the gateway. */
    synchronized void moveTo(Object from, long offset) {
        if (from == reader && (offset > end || !isTimed)) {
            note(offset);
            end = Math.max(end, offset);
            notifyAll();
        }
    }

    /** Records the error after which the position no longer moves. Waiting readers then throw this error. */
    synchronized void fail(Object from, RuntimeException why) {
        if (from == reader) {
            failure = why;
            notifyAll();
        }
    }

    /**
     * Waits for a limited time until the journal has frames after an offset, or until batches must end.
     *
     * @param offset that the reader has reached
     * @param nanoseconds longest time to wait
     * @return offset up to which the journal may be read; not after {@code offset} if no frames came
     */
    synchronized long await(long offset, long nanoseconds) throws InterruptedException {
        long until = System.nanoTime() + nanoseconds;
        while (end <= offset && !isEnding) {
            if (failure != null) {
                throw failure;
            }
            if (isClosed) {
                throw new IllegalStateException("the query has stopped");
            }
            long left = until - System.nanoTime();
            if (left <= 0) {
                break;
            }
            TimeUnit.NANOSECONDS.timedWait(this, left);
        }
        return end;
    }

    /** Says whether batches must end now. */
    synchronized boolean isEnding() {
        return isEnding;
    }

    private synchronized JournalHead ending() {
        isEnding = true;
        notifyAll();
        return this;
    }

    private synchronized JournalHead closed() {
        isClosed = true;
        notifyAll();
        if (call != null) {
            call.close();
        }
        channel.shutdownNow();
        return this;
    }
}
