package org.wallaroo.spark.deliver;

import com.google.protobuf.ByteString;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import org.wallaroo.spark.account.MonitorNumbers;
import org.wallaroo.spark.message.Arrivals;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.rpc.Channels;
import org.wallaroo.spark.rpc.ReplyQueue;
import org.wallaroo.spark.rpc.ServiceFailure;
import wallaroo.service.v1.Service.Chunk;
import wallaroo.service.v1.Service.DeliverReply;
import wallaroo.service.v1.Service.DeliverRequest;
import wallaroo.service.v1.Service.Deliveries;
import wallaroo.service.v1.Service.Delivery;

/**
 * The stream of one engine to the egress. The engine sends frames of results, and gRPC's thread takes the
 * acknowledgements.
 *
 * <p>If the egress ends the stream, the task fails. The next task repeats all input that is not committed, and the
 * egress drops the deliveries that it already has.
 */
public final class DeliverStream extends ClientCall.Listener<DeliverReply> implements AutoCloseable {
    static final MethodDescriptor<DeliverRequest, DeliverReply> DELIVER = Channels.method(
            "wallaroo.service.v1.OutboxService/Deliver", MethodType.BIDI_STREAMING, DeliverRequest.parser(),
            DeliverReply.parser());
    private static final int CHUNK_BYTES = 1 << 20;
    private static final long WINDOW_BYTES = 8 << 20; // largest size of unacknowledged frames

    private final ManagedChannel channel;
    private final ClientCall<DeliverRequest, DeliverReply> call;
    private final Deque<Sent> unacknowledged = new ArrayDeque<>();
    private final Settings settings;
    private final BarrierQueue queue;
    private long number;
    private long acknowledged;
    private long bytes;
    private boolean isOver; // whether the engine has closed the stream
    private RuntimeException failure;

    /**
     * A delivery that the egress has not acknowledged, or a mark between two deliveries. A mark has a place in the
     * journal: all deliveries before the mark derive from input before this place.
     */
    private record Sent(long number, int bytes, JournalRow.Place place) {}

    /**
     * Begins the stream.
     *
     * @param settings of the query
     * @param attempt of the task that began the engine
     * @param begin offset at which the engine begins. The egress uses this offset as number of the batch: a repetition
     *     begins at the same offset, but Spark may give it another number
     * @param queue gets the number of acknowledged deliveries, and the error that has ended the stream
     */
    public DeliverStream(Settings settings, Attempt attempt, long begin, BarrierQueue queue) {
        this.settings = settings;
        this.queue = queue;
        channel = Channels.service(settings.egress());
        call = channel.newCall(DELIVER, CallOptions.DEFAULT.withWaitForReady()); // an egress that died is started again
        call.start(this, new Metadata());
        call.sendMessage(DeliverRequest.newBuilder()
                .setOpening(wallaroo.service.v1.Service.Attempt.newBuilder()
                        .setEpoch(settings.egressEpoch())
                        .setQuery(attempt.query())
                        .setBatch(begin)
                        .setPartition(attempt.partition())
                        .setAttempt(attempt.attempt()))
                .build());
    }

    /**
     * Sends frames. Waits only while too many bytes are not acknowledged.
     *
     * @param items the frames
     * @param arrivals of the messages from which the frames derive
     */
    public synchronized void deliver(List<JournalRow.Item> items, Arrivals arrivals) {
        Deliveries.Builder request = Deliveries.newBuilder();
        int size = 0;
        for (JournalRow.Item item : items) {
            byte[] frame = item.frame();
            for (int begin = 0; begin < frame.length; begin += CHUNK_BYTES) {
                int end = Math.min(frame.length, begin + CHUNK_BYTES);
                if (size > 0 && size + end - begin > CHUNK_BYTES) {
                    send(request);
                    size = 0;
                }
                size += end - begin;
                number++;
                unacknowledged.add(new Sent(number, end - begin, null));
                bytes += end - begin;
                request.addItems(Delivery.newBuilder().setNumber(number).setPort(item.port()).setBucket(item.origin())
                        .setChunk(Chunk.newBuilder()
                                .setData(ByteString.copyFrom(frame, begin, end - begin))
                                .setIsContinued(end < frame.length)));
            }
        }
        if (size > 0) {
            long computed = arrivals.begunMs() + arrivals.computedMs();
            send(request.addAllArrived(arrivals.forEgress()).setComputedMs(computed));
        }
        waitWhileAbove(WINDOW_BYTES);
    }

    private void send(Deliveries.Builder request) {
        call.sendMessage(DeliverRequest.newBuilder().setDeliveries(request).build());
        request.clear();
    }

    /** Marks the place that the monitor may report as soon as the egress has acknowledged all deliveries so far. */
    public synchronized void mark(JournalRow.Place place) {
        unacknowledged.add(new Sent(number, 0, place));
        take(acknowledged);
    }

    /** Informs the egress that Spark has committed all input before a sequence, so that it will not be repeated. */
    public synchronized void commit(long sequence) {
        if (!isOver) { // the engine may have ended before the next task begins
            call.sendMessage(DeliverRequest.newBuilder().setCommitted(sequence).build());
        }
    }

    /** Returns the number of deliveries sent. */
    public synchronized long number() {
        return number;
    }

    /**
     * Waits until all deliveries are acknowledged.
     *
     * @throws RuntimeException if the egress has ended the stream
     */
    public synchronized void finish() {
        waitWhileAbove(0);
        isOver = true;
        call.halfClose();
    }

    private void waitWhileAbove(long limit) {
        while (bytes > limit && failure == null) {
            try {
                wait();
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("the engine was interrupted", error);
            }
        }
        if (failure != null) {
            throw failure;
        }
    }

    @Override
    public void onMessage(DeliverReply reply) {
        long upTo = reply.getNumber();
        synchronized (this) {
            if (upTo >= acknowledged && upTo <= number) {
                take(upTo);
                notifyAll();
                queue.acknowledge(upTo);
                return;
            }
        }
        fail(OperatorFailure.of("I901", "reason", "the egress acknowledges delivery " + upTo + " after " + acknowledged
                + "; " + number + " were sent"));
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
        fail(ServiceFailure.of("egress", settings.egress(), new ReplyQueue.StreamEnded(status, trailers)));
    }

    private void fail(RuntimeException error) {
        synchronized (this) {
            if (isOver) {
                return;
            }
            failure = failure == null ? error : failure;
            notifyAll();
        }
        queue.fail(error);
    }

    private void take(long upTo) {
        acknowledged = upTo;
        while (!unacknowledged.isEmpty() && unacknowledged.getFirst().number() <= upTo) {
            Sent sent = unacknowledged.removeFirst();
            bytes -= sent.bytes();
            if (sent.place() != null) {
                MonitorNumbers.of(settings.text()).reach(sent.place());
            }
        }
    }

    /** Ends the stream. This end is not reported as a failure. */
    @Override
    public void close() {
        synchronized (this) {
            isOver = true;
        }
        call.cancel("the engine has ended", null);
        channel.shutdownNow();
    }
}
