package org.wallaroo.spark.rpc;

import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.EnumSet;
import java.util.Set;

/**
 * A call that a gateway answers with a stream of replies that has no end. If the connection breaks or the gateway
 * restarts, the call is made again and again until it is answered.
 *
 * <p>The driver decides how long a service may be away, by asking the service for its status. If the service
 * refuses the call, or too many calls in succession fail without a reply, the caller gets the error.
 *
 * @param <Q> type of the request
 * @param <R> type of the replies
 */
public final class LastingCall<Q, R> implements AutoCloseable {
    private static final long AGAIN_MS = 100;
    private static final int FAILURE_LIMIT = 20;
    private static final Set<Status.Code> AWAY =
            EnumSet.of(Status.Code.OK, Status.Code.UNAVAILABLE, Status.Code.CANCELLED);
    private static final Set<Status.Code> REFUSED = EnumSet.of(
            Status.Code.FAILED_PRECONDITION, Status.Code.UNIMPLEMENTED, Status.Code.UNAUTHENTICATED);

    private final ManagedChannel channel;
    private final MethodDescriptor<Q, R> method;
    private final Caller<Q, R> caller;
    private volatile ClientCall<Q, R> call;
    private volatile int failures; // failed calls since the last reply; calls do not count while the service is away
    private boolean isOver;

    /** Makes the requests and takes the replies. Runs in gRPC's thread, or in the thread that opens the call. */
    public interface Caller<Q, R> {
        /** Returns the request of the next call, after {@link #take} has received all replies of the previous one. */
        Q request();

        /** Returns how many replies the service may send at first; {@link LastingCall#ask} permits further ones. */
        int ahead();

        /** Takes a reply. */
        void take(R reply);

        /** Gets the error after which the call is not made again. */
        void fail(ReplyQueue.StreamEnded why);
    }

    public LastingCall(ManagedChannel channel, MethodDescriptor<Q, R> method, Caller<Q, R> caller) {
        this.channel = channel;
        this.method = method;
        this.caller = caller;
    }

    /** Begins the call, unless it has ended for good. */
    public synchronized void open() {
        if (isOver) {
            return;
        }
        ClientCall<Q, R> made = channel.newCall(method, Channels.byHand());
        made.start(new Listener(), new Metadata());
        call = made; // set before ahead(): a thread that takes a reply meanwhile calls ask
        made.request(caller.ahead());
        made.sendMessage(caller.request());
        made.halfClose();
    }

    /** Permits the service to send more replies. */
    public void ask(int count) {
        call.request(count);
    }

    /** Ends the call for good. */
    @Override
    public synchronized void close() {
        isOver = true;
        if (call != null) {
            call.cancel("nobody asks any longer", null);
        }
    }

    private final class Listener extends ClientCall.Listener<R> {
        @Override
        public void onMessage(R reply) {
            failures = 0;
            caller.take(reply);
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
            synchronized (LastingCall.this) {
                if (isOver) {
                    return;
                }
                failures += AWAY.contains(status.getCode()) ? 0 : 1;
                if (!REFUSED.contains(status.getCode()) && failures < FAILURE_LIMIT) {
                    Channels.later(AGAIN_MS, LastingCall.this::open);
                    return;
                }
                isOver = true;
            }
            caller.fail(new ReplyQueue.StreamEnded(status, trailers));
        }
    }
}
