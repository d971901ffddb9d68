package org.wallaroo.spark.rpc;

import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Calls a remote gateway or egress, and repeats calls while the service is away. */
public final class ServiceCalls {
    private static final Map<String, ManagedChannel> OPEN = new ConcurrentHashMap<>(); // by address, for all tasks
    private static final long CALL_MS = 30_000;
    private static final long PATIENCE_NS = 60_000_000_000L;
    private static final long FIRST_PAUSE_MS = 50;
    private static final long LONGEST_PAUSE_MS = 1000;

    private final String kind;
    private final String address;
    private long since = System.nanoTime();
    private long pauseMs = FIRST_PAUSE_MS;

    /**
     * Prepares the calls of one service.
     *
     * @param kind gateway or egress
     * @param address HOST:PORT
     */
    public ServiceCalls(String kind, String address) {
        this.kind = kind;
        this.address = address;
    }

    /** Returns the channel to the service. */
    public ManagedChannel channel() {
        return OPEN.computeIfAbsent(address, Channels::service);
    }

    /**
     * Calls a method, and repeats the call while the service is away.
     *
     * @throws RuntimeException if the service reports a failure, or was away for too long (R642)
     */
    public <Q, R> R call(MethodDescriptor<Q, R> method, Q request) {
        progressed();
        while (true) {
            ReplyQueue<Q, R> call = new ReplyQueue<>(channel(), method);
            try {
                call.send(request);
                call.halfClose();
                R reply = call.poll(CALL_MS);
                if (reply != null) {
                    return reply;
                }
                call.cancel();
                throw call.late();
            } catch (ReplyQueue.StreamEnded error) {
                again(error);
            }
        }
    }

    /** Returns the error with which a task fails because its call has ended. */
    public RuntimeException failure(ReplyQueue.StreamEnded error) {
        return ServiceFailure.of(kind, address, error);
    }

    /** Records that the service has answered: the time for which it may be away begins again. */
    public void progressed() {
        since = System.nanoTime();
        pauseMs = FIRST_PAUSE_MS;
    }

    /**
     * Waits before a failed call is repeated.
     *
     * @throws RuntimeException if the failure is permanent, or the service was away for too long
     */
    public void again(ReplyQueue.StreamEnded error) {
        if (!ServiceFailure.isPassing(error) || System.nanoTime() - since >= PATIENCE_NS) {
            throw failure(error);
        }
        try {
            Thread.sleep(pauseMs);
        } catch (InterruptedException stopped) {
            throw ReplyQueue.interrupted(stopped);
        }
        pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    }
}
