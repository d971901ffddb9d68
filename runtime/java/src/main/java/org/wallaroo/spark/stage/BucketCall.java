package org.wallaroo.spark.stage;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnsafeByteOperations;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.wallaroo.spark.bucket.BucketStore;
import org.wallaroo.spark.bucket.BucketVersion;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.worker.Audit;
import org.wallaroo.spark.worker.Quarantine;
import org.wallaroo.spark.worker.WorkerChannel;
import org.wallaroo.spark.worker.WorkerStream;
import wallaroo.worker.v1.WorkerOuterClass.Bucket;
import wallaroo.worker.v1.WorkerOuterClass.Done;
import wallaroo.worker.v1.WorkerOuterClass.Failure;
import wallaroo.worker.v1.WorkerOuterClass.Output;
import wallaroo.worker.v1.WorkerOuterClass.Reply;
import wallaroo.worker.v1.WorkerOuterClass.Request;
import wallaroo.worker.v1.WorkerOuterClass.StateChange;
import wallaroo.worker.v1.WorkerOuterClass.StateLog;
import wallaroo.worker.v1.WorkerOuterClass.Version;

/**
 * A call of the worker for one bucket. It gets its frames in parts (a part is the frames of one request). In real-time
 * mode the worker releases the outputs of a part at once. Changes of states come when the call ends.
 *
 * <p>The call keeps its parts until it has ended. When the worker dies, all parts are sent again. Outputs of parts that
 * were released before are dropped, except new dead letters: {@link EmittedLetters} drops only emitted letters.
 */
final class BucketCall {
    // Codes of failures that a careful repetition can attribute to one message.
    private static final Set<String> HEALED_BY_CARE = Set.of("C511", "C525", "W430");

    private final int bucket;
    private final int number; // of the bucket in the store, and origin of its outputs
    private final BucketVersion version;
    private final List<byte[]> parts = new ArrayList<>();
    private final Quarantine quarantine = new Quarantine();
    private final List<Output> pending = new ArrayList<>();
    private final List<byte[]> changes = new ArrayList<>();
    private final Audit audit;
    private final boolean releases;
    private final Map<Integer, Long> came = new HashMap<>(); // messages by port, of all parts
    private final Map<Integer, Long> gone = new HashMap<>(); // messages by port, of parts released on this stream
    private final EmittedLetters letters = new EmittedLetters();
    private long bytes;
    private long index;
    private int sent; // number of parts sent on the open stream
    private int answered; // number of parts answered on the open stream
    private int left; // number of parts whose outputs this operator has emitted
    private boolean isEnding;
    private boolean hasSentEnd;
    private Done done;

    BucketCall(int bucket, int number, BucketVersion version, Audit audit, boolean releases) {
        this.bucket = bucket;
        this.number = number;
        this.version = version;
        this.audit = audit;
        this.releases = releases;
    }

    int bucket() {
        return bucket;
    }

    BucketVersion version() {
        return version;
    }

    long bytes() {
        return bytes;
    }

    long index() {
        return index;
    }

    Quarantine quarantine() {
        return quarantine;
    }

    /** Adds the frames of the next part. */
    void add(byte[] frames) {
        parts.add(frames);
        Frames.countByPort(frames).forEach((port, count) -> came.merge(port, count, Long::sum));
        bytes += frames.length;
    }

    /** Returns the number of the call's messages, by port. */
    Map<Integer, Long> came() {
        return came;
    }

    /** Lets the call end after the parts added so far. */
    void end() {
        isEnding = true;
    }

    /** Says whether the worker has answered all parts and, after {@link #end}, the end of the call. */
    boolean isAnswered() {
        return isEnding ? done != null : answered == parts.size();
    }

    /** Returns the worker's answer to the end of the call, or null while the call is open. */
    Done done() {
        return done;
    }

    List<byte[]> changes() {
        return changes;
    }

    /** Prepares to send the call again on another stream. */
    void restart() {
        sent = 0;
        answered = 0;
        hasSentEnd = false;
        pending.clear();
        changes.clear();
        letters.restart();
        gone.clear();
    }

    /** Sends the parts, and the end of the call, that were not sent on this stream yet. */
    void send(WorkerStream stream) {
        if (sent == 0 && !hasSentEnd) {
            index = stream.nextIndex();
        }
        for (; sent < parts.size(); sent++) {
            byte[] frames = parts.get(sent);
            stream.send(of(request(sent == 0)
                    .setFrames(UnsafeByteOperations.unsafeWrap(frames)).setMore(true).setRelease(releases)));
        }
        if (isEnding && !hasSentEnd) {
            hasSentEnd = true;
            stream.send(of(request(parts.isEmpty())));
        }
    }

    private static Request of(Bucket.Builder bucket) {
        return Request.newBuilder().setBucket(bucket).build();
    }

    private Bucket.Builder request(boolean isFirst) {
        Bucket.Builder request = Bucket.newBuilder()
                .setIndex(index)
                .setBucket(bucket)
                .setVersion(Version.newBuilder().setCounter(version.counter()).setNonce(version.nonce()))
                .setWantsSnapshot(version.isCompactionDue(bucket))
                .setAlone(quarantine.isAlone())
                .setCareful(quarantine.isCareful());
        return isFirst ? request.addAllSkips(quarantine.skips()) : request;
    }

    /**
     * Receives replies until the worker has answered everything.
     *
     * @param stream of the replies
     * @param store store of the bucket's log, which the worker may ask for
     * @param channel raises the error of a worker that breaks a rule
     * @param released list to which the outputs that may leave are added
     */
    void receive(WorkerStream stream, BucketStore store, WorkerChannel channel, List<JournalRow.Item> released) {
        while (!isAnswered()) {
            Reply reply = stream.receive(quarantine);
            switch (reply.getKindCase()) {
                case NEED_STATE -> {
                    channel.checkIndex(reply.getNeedState().getIndex(), index);
                    pending.clear();
                    changes.clear();
                    sendLog(stream, store.log(number, version));
                }
                case OUTPUT -> {
                    channel.checkIndex(reply.getOutput().getIndex(), index);
                    audit.output(reply.getOutput());
                    pending.add(reply.getOutput());
                }
                case RELEASED -> {
                    channel.checkIndex(reply.getReleased().getIndex(), index);
                    release(channel, released);
                }
                case CHANGE -> keep(channel, reply.getChange());
                case DONE -> {
                    if (!releases) {
                        answered = sent - 1;
                        release(channel, released);
                    }
                    finish(channel, reply.getDone());
                }
                case FAILURE -> fail(channel, reply.getFailure(), stream.generation());
                default -> throw channel.brokeRules("an empty reply came out of turn");
            }
        }
    }

    /** Lets the call be repeated one message at a time if this can show the cause; otherwise raises the failure. */
    private void fail(WorkerChannel channel, Failure failure, int generation) {
        if (HEALED_BY_CARE.contains(failure.getCode()) && !quarantine.isCareful()) {
            quarantine.beCareful();
            throw new Repeated();
        }
        channel.failed(failure, generation);
    }

    /** Signals that a call must be made again by the same process of the worker. */
    static final class Repeated extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    private void sendLog(WorkerStream stream, List<byte[]> entries) {
        List<List<byte[]>> parts = entries.isEmpty() ? List.of(entries) : RequestParts.of(entries);
        for (int i = 0; i < parts.size(); i++) {
            StateLog.Builder log = StateLog.newBuilder().setIndex(index).setMore(i + 1 < parts.size());
            parts.get(i).forEach(entry -> log.addEntries(UnsafeByteOperations.unsafeWrap(entry)));
            stream.send(Request.newBuilder().setLog(log).build());
        }
    }

    private void release(WorkerChannel channel, List<JournalRow.Item> released) {
        if (answered == sent) {
            throw channel.brokeRules("it released more parts than it got");
        }
        answered++;
        boolean hasLeft = answered <= left;
        left = Math.max(left, answered);
        for (Output output : pending) {
            byte[] frame = output.getFrame().toByteArray();
            gone.merge(output.getPort(), Frames.count(frame, 0), Long::sum);
            if (output.getPort() == Frames.DEAD_LETTER_PORT) {
                frame = letters.take(frame);
            } else if (hasLeft) {
                frame = null;
            }
            if (frame != null) {
                released.add(new JournalRow.Item(output.getPort(), output.getBucket(), number, frame));
            }
        }
        pending.clear();
    }

    private void keep(WorkerChannel channel, StateChange change) {
        channel.checkIndex(change.getIndex(), index);
        for (ByteString entry : change.getEntriesList()) {
            byte[] bytes = entry.toByteArray();
            audit.change(bytes);
            changes.add(bytes);
        }
    }

    private void finish(WorkerChannel channel, Done reply) {
        channel.checkIndex(reply.getIndex(), index);
        if (reply.getNonce() == 0) {
            throw channel.brokeRules("a version's nonce is 0");
        }
        if (answered != parts.size() || !hasSentEnd || !pending.isEmpty()) {
            throw channel.brokeRules("a call is done before its parts were released");
        }
        audit.call(came, gone, reply.getCountsList(), reply.getVisitsList());
        done = reply;
    }
}
