package org.wallaroo.spark.stage;

import org.wallaroo.spark.worker.WorkerChannel;
import org.wallaroo.spark.worker.WorkerStream;
import wallaroo.worker.v1.WorkerOuterClass.Bucket;
import wallaroo.worker.v1.WorkerOuterClass.Opening;
import wallaroo.worker.v1.WorkerOuterClass.StateReply;
import wallaroo.worker.v1.WorkerOuterClass.StateRequest;

/** A stream of the calls of one bucket: those of one stream do not overlap, and buckets are to run side by side. */
final class StateStream {
    /** How large a request with several entries of a log may be. */
    static final int REQUEST_BYTES = 8 << 20;

    private final WorkerStream<StateRequest, StateReply> stream;
    private long calls;

    StateStream(WorkerChannel channel, int bucket, Opening opening, long deadlineMs) {
        stream = new WorkerStream<>(channel, bucket, WorkerChannel.PROCESS_STATE, deadlineMs);
        send(StateRequest.newBuilder().setOpening(opening.toBuilder().setInFlight(stream.flight().path())).build());
    }

    long nextIndex() {
        return calls++;
    }

    int generation() {
        return stream.generation();
    }

    String file() {
        return stream.flight().name();
    }

    void send(Bucket.Builder bucket) {
        send(StateRequest.newBuilder().setBucket(bucket).build());
    }

    void send(StateRequest request) {
        stream.send(request);
    }

    StateReply receive() {
        return stream.receive();
    }

    void close() {
        stream.close();
    }
}
