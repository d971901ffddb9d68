package org.wallaroo.spark.stage;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.wallaroo.spark.account.CallCounts;
import org.wallaroo.spark.bucket.BucketStore;
import org.wallaroo.spark.bucket.BucketVersion;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Fault;
import org.wallaroo.spark.query.StageSettings;
import org.wallaroo.spark.worker.Audit;
import org.wallaroo.spark.worker.Suspect;
import org.wallaroo.spark.worker.TimeLimit;
import org.wallaroo.spark.worker.WorkerChannel;
import org.wallaroo.spark.worker.WorkerGone;
import org.wallaroo.spark.worker.WorkerStream;
import wallaroo.worker.v1.WorkerOuterClass.Opening;
import wallaroo.worker.v1.WorkerOuterClass.Request;

/** The open bucket calls of a stage in a task. Calls of several buckets run at the same time. */
final class BucketCalls {
    /** Limit of open calls in micro-batches: each call occupies a thread of the worker, which all tasks share. */
    static final int OPEN_CALLS = 16;
    private static final long OPEN_BYTES = 32 << 20; // limit of frames in open calls; the last call may exceed this

    private final WorkerChannel channel;
    private final Opening opening;
    private final BucketStore store;
    private final StageSettings settings;
    private final Audit audit;
    private final CallCounts account;
    private final boolean endsAtOnce;
    private final TimeLimit timeLimit;
    private final Map<Integer, BucketCall> open = new LinkedHashMap<>();
    private final int first; // number of bucket 0 in the store
    private final Map<Integer, WorkerStream> streams = new HashMap<>();

    BucketCalls(WorkerChannel channel, Opening opening, BucketStore store, StageSettings settings, CallCounts account,
            boolean endsAtOnce) {
        this.channel = channel;
        this.opening = opening;
        this.store = store;
        this.settings = settings;
        this.audit = channel.audit(opening.getStage());
        this.account = account;
        this.endsAtOnce = endsAtOnce;
        this.timeLimit = new TimeLimit(settings.deadlineMs());
        this.first = settings.block() * opening.getStage().getBucketCount();
    }

    /** Says whether no call is open. */
    boolean isIdle() {
        return open.isEmpty();
    }

    /**
     * Sends frames in the open calls of their buckets, or in new calls, and returns the outputs.
     *
     * @param items frames with their buckets, all of one range of the journal
     * @return iterator over outputs; the origin of an output is the store's number of the bucket that emitted it
     */
    Iterator<List<JournalRow.Item>> run(List<JournalRow.Item> items) {
        Map<Integer, List<byte[]>> frames = byBucket(items);
        if (endsAtOnce) {
            return new Ending(frames);
        }
        List<BucketCall> asked = new ArrayList<>();
        frames.forEach((bucket, each) -> {
            BucketCall call = add(bucket, each);
            if (call.bytes() > settings.flushBytes()) {
                call.end();
            }
            asked.add(call);
        });
        return List.of(exchange(asked)).iterator();
    }

    /** Runs the calls of a micro-batch, several at a time. Each step returns the outputs of the oldest open call. */
    private final class Ending implements Iterator<List<JournalRow.Item>> {
        private final Iterator<Map.Entry<Integer, List<byte[]>>> waiting;

        private Ending(Map<Integer, List<byte[]>> frames) {
            waiting = frames.entrySet().iterator();
        }

        @Override
        public boolean hasNext() {
            return waiting.hasNext() || !open.isEmpty();
        }

        @Override
        public List<JournalRow.Item> next() {
            while (waiting.hasNext() && hasRoom()) {
                Map.Entry<Integer, List<byte[]>> next = waiting.next();
                add(next.getKey(), next.getValue()).end();
                waiting.remove(); // from now on only the call keeps its frames
            }
            return exchange(List.copyOf(open.values()));
        }

        private boolean hasRoom() {
            return open.size() < OPEN_CALLS && open.values().stream().mapToLong(BucketCall::bytes).sum() < OPEN_BYTES;
        }
    }

    private BucketCall add(int bucket, List<byte[]> frames) {
        BucketCall call = open.computeIfAbsent(bucket,
                key -> new BucketCall(bucket, first + bucket, store.version(first + bucket), audit, !endsAtOnce));
        RequestParts.of(frames).forEach(part -> call.add(RequestParts.joined(part)));
        return call;
    }

    /** Ends all open calls, and stores their changes. */
    List<JournalRow.Item> flush() {
        open.values().forEach(BucketCall::end);
        return exchange(List.copyOf(open.values()));
    }

    /** Ends the streams. */
    void close() {
        List<WorkerStream> ending = List.copyOf(streams.values());
        streams.clear();
        Closing.all(ending, WorkerStream::close);
    }

    /** Returns the frames of each bucket. They are ordered by origin and port, however they were divided into parts. */
    private static Map<Integer, List<byte[]>> byBucket(List<JournalRow.Item> items) {
        Map<Integer, List<byte[]>> frames = new LinkedHashMap<>();
        items.stream()
                .sorted(Comparator.comparingInt(JournalRow.Item::origin).thenComparingInt(JournalRow.Item::port))
                .forEach(item -> frames.computeIfAbsent(item.bucket(), bucket -> new ArrayList<>()).add(item.frame()));
        return frames;
    }

    /**
     * Sends the unsent frames of calls, and awaits answers: in real-time mode of all calls, in micro-batches of the
     * first.
     *
     * @return outputs that may leave; the changes of calls that are done are stored
     */
    private List<JournalRow.Item> exchange(List<BucketCall> asked) {
        List<JournalRow.Item> released = new ArrayList<>();
        List<BucketCall> waiting = asked;
        while (true) {
            try {
                waiting.forEach(call -> call.send(stream(call.bucket())));
                waiting.stream()
                        .limit(endsAtOnce ? 1 : waiting.size())
                        .forEach(call -> call.receive(stream(call.bucket()), store, channel, released));
                break;
            } catch (WorkerGone gone) {
                learn(gone);
                close();
                channel.recover(gone);
                waiting = restarted();
            } catch (BucketCall.Repeated repeated) {
                close();
                waiting = restarted();
            }
        }
        channel.progressed();
        account.gave(opening.getStage().getId(), released);
        List.copyOf(open.values()).stream().filter(call -> call.done() != null).forEach(this::finish);
        return released;
    }

    /** Restarts all calls that are not done, and returns them. */
    private List<BucketCall> restarted() {
        List<BucketCall> calls = open.values().stream().filter(call -> call.done() == null).toList();
        calls.forEach(BucketCall::restart);
        return calls;
    }

    /**
     * Opens the streams of the buckets to the worker in advance, as many as may be open at once. Then reads the version
     * of the states of every bucket.
     */
    void open(List<Integer> buckets) {
        buckets.stream().limit(endsAtOnce ? OPEN_CALLS : buckets.size()).forEach(this::stream);
        buckets.forEach(bucket -> store.version(first + bucket));
    }

    private WorkerStream stream(int bucket) {
        account.opened(opening.getStage().getId());
        return streams.computeIfAbsent(bucket, this::opened);
    }

    /** Opens the stream of a bucket. Calls of one stream do not overlap, so each bucket needs its own stream. */
    private WorkerStream opened(int bucket) {
        var stream = new WorkerStream(channel, bucket, WorkerChannel.PROCESS_STATE, opening, timeLimit);
        stream.send(Request.newBuilder().setOpening(stream.opening()).build());
        return stream;
    }

    private void learn(WorkerGone gone) {
        for (BucketCall call : open.values()) {
            var stream = streams.get(call.bucket());
            Suspect suspect = stream == null ? null : gone.suspect(stream.flight());
            if (suspect != null && suspect.index() == call.index() && call.done() == null) {
                channel.learn(call.quarantine(), suspect);
            }
        }
    }

    private void finish(BucketCall call) {
        Fault.reach("task.after_reply");
        List<byte[]> changes = call.changes();
        long bytes = changes.stream().mapToLong(entry -> entry.length).sum();
        // The first changes of a bucket are its whole state.
        boolean isWhole = call.done().getSnapshot() || call.version().counter() == 0;
        BucketVersion after = call.version().after(call.done().getNonce(), changes.size(), bytes, isWhole);
        store.store(first + call.bucket(), call.version(), after, changes);
        account.ran(opening.getStage().getId(), call.came());
        account.counters().count(call.done().getCountsList());
        account.counters().visit(call.done().getVisitsList());
        account.counters().store(opening.getStage().getId(), call.bucket(), call.done().getKeys(), after);
        open.remove(call.bucket());
        if (endsAtOnce) {
            streams.remove(call.bucket()).close();
        }
    }
}
