package org.wallaroo.spark.stage;

import org.wallaroo.spark.worker.Deadline;
import org.wallaroo.spark.worker.FlightFile;
import org.wallaroo.spark.worker.Quarantine;
import org.wallaroo.spark.worker.WorkerChannel;
import org.wallaroo.spark.worker.WorkerStream;
import wallaroo.worker.v1.WorkerOuterClass.Bucket;
import wallaroo.worker.v1.WorkerOuterClass.Opening;
import wallaroo.worker.v1.WorkerOuterClass.StateReply;
import wallaroo.worker.v1.WorkerOuterClass.StateRequest;

/** The stream for calls of one bucket. Calls of one stream do not overlap, so each bucket has its own stream. */
final class StateStream {
    private final WorkerStream<StateRequest, StateReply> stream;
    private long calls;

    StateStream(WorkerChannel channel, int bucket, Opening opening, Deadline deadline) {
        stream = new WorkerStream<>(channel, bucket, WorkerChannel.PROCESS_STATE, opening, deadline);
        send(StateRequest.newBuilder().setOpening(opening.toBuilder().setInFlight(stream.flight().path())).build());
    }

    long nextIndex() {
        return calls++;
    }

    int generation() {
        return stream.generation();
    }

    FlightFile flight() {
        return stream.flight();
    }

    void send(Bucket.Builder bucket) {
        send(StateRequest.newBuilder().setBucket(bucket).build());
    }

    void send(StateRequest request) {
        stream.send(request);
    }

    StateReply receive(Quarantine quarantine) {
        return stream.receive(quarantine);
    }

    void close() {
        stream.close();
    }
}
