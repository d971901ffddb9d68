package org.wallaroo.spark.realtime;

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Status;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import wallaroo.service.v1.Service.FollowRequest;
import wallaroo.service.v1.Service.Position;

/**
 * Knows how far a journal may be read: the gateway pushes it, so that waiting costs nothing.
 *
 * <p>One for each query in this virtual machine. While the gateway is away it knows what it knew, and asks again; a
 * gateway that is there and fails each time is an error.
 */
final class JournalHead {
    static final MethodDescriptor<FollowRequest, Position> FOLLOW = UnixChannels.method(
            "wallaroo.service.v1.JournalService/Follow", MethodType.SERVER_STREAMING, FollowRequest.parser(),
            Position.parser());
    private static final long AGAIN_MS = 100;
    private static final int FAILURE_LIMIT = 20;
    private static final Set<Status.Code> AWAY =
            EnumSet.of(Status.Code.OK, Status.Code.UNAVAILABLE, Status.Code.CANCELLED);
    private static final Set<Status.Code> REFUSED =
            EnumSet.of(Status.Code.FAILED_PRECONDITION, Status.Code.UNIMPLEMENTED);
    private static final Map<String, JournalHead> OPEN = new ConcurrentHashMap<>();

    private final Settings settings;
    private final FollowRequest request;
    private final ManagedChannel channel;
    private long end;
    private boolean isEnding;
    private boolean isClosed;
    private Status last = Status.OK;
    private int failures; // in a row, of a gateway that is there

    private JournalHead(Settings settings, JournalOffset start) {
        this.settings = settings;
        this.request = FollowRequest.newBuilder()
                .setEpoch(settings.gatewayEpoch())
                .setJournal(JournalOffset.hex(start.journal()))
                .build();
        this.channel = UnixChannels.open(settings.gateway());
        follow();
    }

    /**
     * Returns that of a query, following since the first call.
     *
     * @param settings of the query
     * @param start names the journal
     */
    static JournalHead of(Settings settings, JournalOffset start) {
        return OPEN.computeIfAbsent(settings.text(), text -> new JournalHead(settings, start));
    }

    /** Lets the batches of a query end now, and each one that begins later. Its engine has read the head before. */
    static void endBatches(String settings) {
        OPEN.computeIfPresent(settings, (text, head) -> head.ending());
    }

    /** Ends that of a query for good: a task that begins too late gets the closed one. */
    static void close(Settings settings) {
        OPEN.computeIfPresent(settings.text(), (text, head) -> head.closed());
    }

    private void follow() {
        ClientCall<FollowRequest, Position> call = channel.newCall(FOLLOW, CallOptions.DEFAULT);
        call.start(new Listener(), new Metadata());
        call.sendMessage(request);
        call.halfClose();
    }

    private final class Listener extends ClientCall.Listener<Position> {
        @Override
        public void onMessage(Position position) {
            moveTo(position.getOffset());
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
            again(status);
        }
    }

    private synchronized void moveTo(long offset) {
        failures = 0;
        if (offset > end) {
            end = offset;
            notifyAll();
        }
    }

    private void again(Status status) {
        synchronized (this) {
            last = status;
            failures += AWAY.contains(status.getCode()) ? 0 : 1;
            if (isClosed || REFUSED.contains(status.getCode()) || failures >= FAILURE_LIMIT) {
                isClosed = true;
                notifyAll();
                return;
            }
        }
        Thread thread = new Thread(() -> {
            try {
                TimeUnit.MILLISECONDS.sleep(AGAIN_MS);
            } catch (InterruptedException error) {
                return;
            }
            synchronized (this) {
                if (!isClosed) {
                    follow();
                }
            }
        }, "wallaroo-follow");
        thread.setDaemon(true);
        thread.start();
    }

    /**
     * Waits until the journal goes past an offset, for a while.
     *
     * @param offset that the reader has reached
     * @param nanoseconds how long to wait
     * @return where the journal ends; at most {@code offset}: nothing came
     */
    synchronized long await(long offset, long nanoseconds) throws InterruptedException {
        long until = System.nanoTime() + nanoseconds;
        while (end <= offset && !isEnding) {
            if (isClosed) {
                String reason = last.getCode() + ": " + last.getDescription();
                throw OperatorFailure.of("R617", "process", "gateway", "reason",
                        "it does not tell where its journal ends: " + reason, "log", settings.gateway());
            }
            long left = until - System.nanoTime();
            if (left <= 0) {
                break;
            }
            TimeUnit.NANOSECONDS.timedWait(this, left);
        }
        return end;
    }

    /** Says whether batches are to end now. */
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
        channel.shutdownNow();
        return this;
    }
}
