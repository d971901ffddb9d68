package org.wallaroo.spark.stage;

import com.google.protobuf.UnsafeByteOperations;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.wallaroo.spark.account.CallCounts;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.message.LetterFrame;
import org.wallaroo.spark.worker.Audit;
import org.wallaroo.spark.worker.Quarantine;
import org.wallaroo.spark.worker.Suspect;
import org.wallaroo.spark.worker.TimeLimit;
import org.wallaroo.spark.worker.WorkerChannel;
import org.wallaroo.spark.worker.WorkerGone;
import org.wallaroo.spark.worker.WorkerStream;
import wallaroo.worker.v1.WorkerOuterClass.Data;
import wallaroo.worker.v1.WorkerOuterClass.Opening;
import wallaroo.worker.v1.WorkerOuterClass.Output;
import wallaroo.worker.v1.WorkerOuterClass.Reply;
import wallaroo.worker.v1.WorkerOuterClass.Request;
import wallaroo.worker.v1.WorkerOuterClass.StepCount;

/**
 * The calls of a stage without state. Data goes to the endpoints of the worker in turn. Answers are taken in the order
 * in which the data was sent.
 *
 * <p>When the worker dies, unanswered data is sent to the next process. No output of such data was emitted before.
 */
final class DataCalls {
    private final WorkerChannel channel;
    private final Opening opening;
    private final TimeLimit timeLimit;
    private final Audit audit;
    private final CallCounts account;
    private final Deque<Unanswered> unanswered = new ArrayDeque<>();
    private List<WorkerStream> streams = List.of();
    private int next; // endpoint of the next data

    DataCalls(WorkerChannel channel, Opening opening, long deadlineMs, CallCounts account) {
        this.channel = channel;
        this.opening = opening;
        this.timeLimit = new TimeLimit(deadlineMs);
        this.audit = channel.audit(opening.getStage());
        this.account = account;
    }

    private static final class Unanswered {
        private final byte[] frames;
        private final Quarantine quarantine = new Quarantine();
        private int endpoint;
        private long index;

        private Unanswered(byte[] frames) {
            this.frames = frames;
        }
    }

    /** Sends data without waiting for an answer. */
    void send(byte[] frames) {
        Unanswered data = new Unanswered(frames);
        unanswered.add(data);
        put(data);
    }

    /** Waits for the answer to the oldest unanswered data, and returns its outputs. */
    List<Output> receive() {
        while (true) {
            try {
                List<Output> outputs = receiveOne(unanswered.getFirst());
                unanswered.removeFirst();
                channel.progressed();
                return outputs;
            } catch (WorkerGone gone) {
                again(gone);
            }
        }
    }

    /** Counts dead letters that replace messages which are too large. The worker does not get these letters. */
    void countLetters(JournalRow.Item letters) {
        account.ran(opening.getStage().getId(), Frames.countByPort(letters.frame()));
        account.gave(opening.getStage().getId(), List.of(letters));
        LetterFrame.read(letters.frame()).letters().forEach(letter -> account.counters().count(List.of(
                StepCount.newBuilder().setPath(letter.path()).setMessagesIn(1).setDeadLetters(1).build())));
    }

    /** Ends the streams. */
    void close() {
        List<WorkerStream> ending = streams;
        streams = List.of();
        Closing.all(ending, WorkerStream::close);
    }

    private void put(Unanswered data) {
        open();
        data.endpoint = next;
        data.index = streams.get(next).nextIndex();
        Data.Builder request = Data.newBuilder()
                .setIndex(data.index)
                .setFrames(UnsafeByteOperations.unsafeWrap(data.frames))
                .addAllSkips(data.quarantine.skips())
                .setAlone(data.quarantine.isAlone());
        streams.get(next).send(Request.newBuilder().setData(request).build());
        next = (next + 1) % streams.size();
    }

    /** Opens the streams, unless they are open. */
    void open() {
        if (!streams.isEmpty()) {
            return;
        }
        account.opened(opening.getStage().getId());
        List<WorkerStream> opened = new ArrayList<>();
        try {
            for (int i = 0; i < channel.width(); i++) {
                var stream = new WorkerStream(channel, i, WorkerChannel.PROCESS, opening, timeLimit);
                opened.add(stream);
                stream.send(Request.newBuilder().setOpening(stream.opening()).build());
            }
        } catch (RuntimeException error) {
            Closing.all(opened, WorkerStream::close);
            throw error;
        }
        streams = opened;
        next = opening.getPartition() % opened.size(); // tasks that send data once use different endpoints
    }

    private void again(WorkerGone gone) {
        for (Unanswered data : unanswered) {
            Suspect suspect = gone.suspect(streams.get(data.endpoint).flight());
            if (suspect != null && suspect.index() == data.index) {
                channel.learn(data.quarantine, suspect);
            }
        }
        close();
        channel.recover(gone);
        unanswered.forEach(this::put);
    }

    private List<Output> receiveOne(Unanswered data) {
        var stream = streams.get(data.endpoint);
        List<Output> outputs = new ArrayList<>();
        Map<Integer, Long> left = new HashMap<>();
        while (true) {
            Reply reply = stream.receive(data.quarantine);
            switch (reply.getKindCase()) {
                case OUTPUT -> {
                    Output output = reply.getOutput();
                    channel.checkIndex(output.getIndex(), data.index);
                    audit.output(output);
                    left.merge(output.getPort(), Frames.count(output.getFrame().toByteArray(), 0), Long::sum);
                    outputs.add(output);
                }
                case DONE -> {
                    channel.checkIndex(reply.getDone().getIndex(), data.index);
                    Map<Integer, Long> came = Frames.countByPort(data.frames);
                    audit.call(came, left, reply.getDone().getCountsList(), List.of());
                    account.ran(opening.getStage().getId(), came);
                    account.gave(opening.getStage().getId(), left);
                    account.counters().count(reply.getDone().getCountsList());
                    return outputs;
                }
                case FAILURE -> channel.failed(reply.getFailure(), stream.generation());
                default -> throw channel.brokeRules("an empty reply came out of turn");
            }
        }
    }
}
