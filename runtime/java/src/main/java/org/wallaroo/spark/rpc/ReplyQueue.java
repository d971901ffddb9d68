package org.wallaroo.spark.rpc;

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * One open call of gRPC. A thread of gRPC collects the replies in a queue, from which the caller takes them.
 *
 * @param <Q> type of the requests
 * @param <R> type of the replies
 */
public class ReplyQueue<Q, R> extends ClientCall.Listener<R> {
    private final ClientCall<Q, R> call;
    private final BlockingQueue<Object> replies = new LinkedBlockingQueue<>();
    private Metadata trailers = new Metadata();
    private Status end; // null while the call is open

    public ReplyQueue(ManagedChannel channel, MethodDescriptor<Q, R> method) {
        this(channel, method, new Metadata());
    }

    public ReplyQueue(ManagedChannel channel, MethodDescriptor<Q, R> method, Metadata metadata) {
        call = channel.newCall(method, CallOptions.DEFAULT);
        call.start(this, metadata);
    }

    @Override
    public void onMessage(R reply) {
        replies.add(reply);
    }

    @Override
    public synchronized void onClose(Status status, Metadata metadata) {
        trailers = metadata;
        end = status;
        replies.add(status);
        notifyAll();
    }

    @Override
    public synchronized void onReady() {
        notifyAll();
    }

    public void send(Q request) {
        call.sendMessage(request);
    }

    /**
     * Sends a request after the connection has taken the requests before it, so that few requests are in memory.
     *
     * @throws StreamEnded if the call has ended, or earlier requests are not sent within {@code milliseconds}
     */
    public void send(Q request, long milliseconds) {
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(milliseconds);
        synchronized (this) {
            while (end == null && !call.isReady()) {
                long left = until - System.nanoTime();
                if (left <= 0) {
                    throw new StreamEnded(Status.DEADLINE_EXCEEDED.withDescription(
                            "it took nothing for " + TimeUnit.MILLISECONDS.toSeconds(milliseconds) + " s"), trailers);
                }
                try {
                    TimeUnit.NANOSECONDS.timedWait(this, left);
                } catch (InterruptedException error) {
                    throw interrupted(error);
                }
            }
            if (end != null) {
                throw new StreamEnded(end, trailers);
            }
        }
        send(request);
    }

    /**
     * Returns the next reply, or null if none comes in time.
     *
     * @throws StreamEnded if the other side has ended the call
     */
    @SuppressWarnings("unchecked")
    public R poll(long milliseconds) {
        Object found;
        try {
            found = milliseconds > 0 ? replies.poll(milliseconds, TimeUnit.MILLISECONDS) : replies.poll();
        } catch (InterruptedException error) {
            throw interrupted(error);
        }
        if (found instanceof Status status) {
            replies.add(status);
            throw new StreamEnded(status, trailers);
        }
        return (R) found;
    }

    /** Returns the error of an interrupted task, and marks the thread as interrupted again. */
    public static IllegalStateException interrupted(Exception error) {
        Thread.currentThread().interrupt();
        return new IllegalStateException("the task was interrupted", error);
    }

    /** Returns the error of a call whose reply did not come in time. */
    public StreamEnded late() {
        return new StreamEnded(Status.DEADLINE_EXCEEDED.withDescription("it gave no answer"), trailers);
    }

    public void halfClose() {
        call.halfClose();
    }

    public void cancel() {
        call.cancel("given up", null);
    }

    /** The error of a call that ended too early. */
    public static final class StreamEnded extends RuntimeException {
        private static final long serialVersionUID = 1L;
        private final transient Status status;
        private final transient Metadata trailers;

        public StreamEnded(Status status, Metadata trailers) {
            // The description of a lost connection is only "io exception".
            super(status.getCode() + ": " + status.getDescription()
                    + (status.getCause() == null ? "" : ": " + status.getCause().getMessage()), status.getCause());
            this.status = status;
            this.trailers = trailers;
        }

        public Status status() {
            return status;
        }

        Metadata trailers() {
            return trailers;
        }
    }
}
