package org.wallaroo.spark.realtime;

import com.google.protobuf.ByteString;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Status;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import wallaroo.service.v1.Service.Chunk;
import wallaroo.service.v1.Service.DeliverOpening;
import wallaroo.service.v1.Service.DeliverReply;
import wallaroo.service.v1.Service.DeliverRequest;
import wallaroo.service.v1.Service.Delivery;

/** The stream of one task attempt to the egress: frames out, acknowledgements back. */
final class DeliverStream {
    static final MethodDescriptor<DeliverRequest, DeliverReply> DELIVER = UnixChannels.method(
            "wallaroo.service.v1.OutboxService/Deliver", MethodType.BIDI_STREAMING, DeliverRequest.parser(),
            DeliverReply.parser());
    private static final int CHUNK_BYTES = 1 << 20;
    private static final long WINDOW_BYTES = 8 << 20; // sent and not acknowledged
    private static final long LOOK_MS = 1000;
    private static final Map<String, ManagedChannel> CHANNELS = new ConcurrentHashMap<>();

    private final ReplyQueue<DeliverRequest, DeliverReply> stream;
    private final Deque<Sent> unacknowledged = new ArrayDeque<>();
    private final Settings settings;
    private long number;
    private long acknowledged;
    private long bytes;

    /** A delivery, or a mark: all before it belongs to so many messages of the journal. */
    private record Sent(long number, int bytes, long messages) {}

    /**
     * Begins the stream.
     *
     * @param settings of the query
     * @param attempt of the task
     * @param begin offset where the batch begins. To the egress it is the number of the batch: what is repeated begins
     *     there, too, whatever Spark's number is, since rehearsals come in between
     */
    DeliverStream(Settings settings, Attempt attempt, long begin) {
        this.settings = settings;
        stream = new ReplyQueue<>(CHANNELS.computeIfAbsent(settings.egress(), UnixChannels::open), DELIVER);
        stream.send(DeliverRequest.newBuilder()
                .setOpening(DeliverOpening.newBuilder()
                        .setEpoch(settings.egressEpoch())
                        .setQuery(attempt.query())
                        .setBatch(begin)
                        .setPartition(attempt.partition())
                        .setAttempt(attempt.attempt()))
                .build());
    }

    /** Takes the acknowledgements that have come. */
    void look() {
        take(0);
    }

    /** Sends a frame; waits only while too much is not acknowledged. */
    void deliver(Parcel.Item item) {
        byte[] frame = item.frame();
        for (int begin = 0; begin < frame.length; begin += CHUNK_BYTES) {
            int end = Math.min(frame.length, begin + CHUNK_BYTES);
            Chunk.Builder chunk = Chunk.newBuilder()
                    .setData(ByteString.copyFrom(frame, begin, end - begin))
                    .setIsContinued(end < frame.length);
            number++;
            stream.send(DeliverRequest.newBuilder()
                    .setDelivery(Delivery.newBuilder()
                            .setNumber(number).setPort(item.port()).setBucket(item.origin()).setChunk(chunk))
                    .build());
            unacknowledged.add(new Sent(number, end - begin, 0));
            bytes += end - begin;
        }
        while (bytes > WINDOW_BYTES) {
            take(LOOK_MS);
        }
    }

    /** Notes how many messages of the journal all deliveries so far belong to. */
    void mark(long messages) {
        unacknowledged.add(new Sent(number, 0, messages));
        acknowledge(acknowledged);
    }

    /**
     * Waits until all is acknowledged.
     *
     * @throws OperatorFailure the egress refuses it
     */
    void finish() {
        while (!unacknowledged.isEmpty()) {
            take(LOOK_MS);
        }
        stream.halfClose();
    }

    /** Ends the stream. */
    void close() {
        stream.cancel();
    }

    private void take(long milliseconds) {
        try {
            DeliverReply reply = stream.poll(milliseconds);
            while (reply != null) {
                acknowledge(reply.getNumber());
                reply = stream.poll(0);
            }
        } catch (ReplyQueue.StreamEnded error) {
            if (error.status().getCode() == Status.Code.FAILED_PRECONDITION) {
                throw ServiceFailure.of(error);
            }
            throw error; // Spark repeats the task, and the egress drops what it has
        }
    }

    private void acknowledge(long upTo) {
        if (upTo < acknowledged || upTo > number) {
            throw OperatorFailure.of("I901", "reason", "the egress acknowledges delivery " + upTo + " after "
                    + acknowledged + "; " + number + " were sent");
        }
        acknowledged = upTo;
        while (!unacknowledged.isEmpty() && unacknowledged.getFirst().number() <= upTo) {
            Sent sent = unacknowledged.removeFirst();
            bytes -= sent.bytes();
            if (sent.messages() > 0) {
                Reached.set(settings, sent.messages());
            }
        }
    }
}
