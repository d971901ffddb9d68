package org.wallaroo.spark.worker;

import com.google.protobuf.MessageLite;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.MethodDescriptor;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.rpc.Channels;
import org.wallaroo.spark.rpc.ReplyQueue;
import wallaroo.worker.v1.WorkerOuterClass.Failure;
import wallaroo.worker.v1.WorkerOuterClass.InitReply;
import wallaroo.worker.v1.WorkerOuterClass.InitRequest;
import wallaroo.worker.v1.WorkerOuterClass.ProcessReply;
import wallaroo.worker.v1.WorkerOuterClass.ProcessRequest;
import wallaroo.worker.v1.WorkerOuterClass.Stage;
import wallaroo.worker.v1.WorkerOuterClass.StateReply;
import wallaroo.worker.v1.WorkerOuterClass.StateRequest;

/** The way to a worker: finds it through its supervisor, and finds it again when it was restarted. */
public final class WorkerChannel {
    public static final MethodDescriptor<ProcessRequest, ProcessReply> PROCESS =
            method("Process", MethodType.BIDI_STREAMING, ProcessRequest.parser(), ProcessReply.parser());
    public static final MethodDescriptor<StateRequest, StateReply> PROCESS_STATE =
            method("ProcessState", MethodType.BIDI_STREAMING, StateRequest.parser(), StateReply.parser());
    private static final MethodDescriptor<InitRequest, InitReply> INIT =
            method("Init", MethodType.UNARY, InitRequest.parser(), InitReply.parser());
    private static final String UNIX = "unix:";
    private static final int BROKEN_LIMIT = 30;
    private static final int RETRY_LIMIT = 3;
    private static final int DEADLINE_LIMIT = 2;
    private static final long INIT_MS = 60_000;
    private static final Map<Path, WorkerChannel> OPEN = new ConcurrentHashMap<>();

    private final Settings settings;
    private final Supervisor supervisor;
    private Supervisor.Process process;
    private final Set<WorkerStream<?, ?>> streams = ConcurrentHashMap.newKeySet();
    private List<ManagedChannel> endpoints = List.of();
    private int broken;
    private int retries;
    private int deadlines;

    private WorkerChannel(Settings settings) {
        this.settings = settings;
        this.supervisor = new Supervisor(Path.of(settings.workerDirectory()));
    }

    /** Returns the channel of this virtual machine to the worker of a query; it stays open across batches. */
    public static WorkerChannel of(Settings settings) {
        return OPEN.computeIfAbsent(Path.of(settings.workerDirectory()), path -> new WorkerChannel(settings));
    }

    private static <Q extends MessageLite, R extends MessageLite> MethodDescriptor<Q, R> method(
            String name, MethodType type, com.google.protobuf.Parser<Q> request, com.google.protobuf.Parser<R> reply) {
        return Channels.method("wallaroo.worker.v1.Worker/" + name, type, request, reply);
    }

    /** Returns how many endpoints share the work. */
    public synchronized int width() {
        connect();
        return endpoints.size();
    }

    /** Returns which process of the worker serves, counted from 1. */
    synchronized int generation() {
        connect();
        return process.generation();
    }

    Supervisor supervisor() {
        return supervisor;
    }

    Path directory() {
        return Path.of(settings.workerDirectory());
    }

    /**
     * Takes note of what a broken stream shows about a message of its call.
     *
     * @param quarantine of the call
     * @param suspect the message
     */
    public void learn(Quarantine quarantine, Suspect suspect) {
        if (quarantine.isBeyond(suspect)) {
            String reason = suspect.cause() == Suspect.Cause.HUNG ? suspect.reason() : suspect.text();
            throw OperatorFailure.of("W415", "worker", settings.worker(), "doing", "read or wrote states",
                    "reason", reason);
        }
        boolean isCertain;
        try {
            isCertain = quarantine.learn(suspect);
        } catch (IllegalStateException error) {
            throw brokeRules(error.getMessage());
        }
        if (isCertain) {
            progressed();
        }
        if (isCertain && suspect.cause() == Suspect.Cause.KILLED) {
            supervisor.excuse(2);
        }
    }

    /** Takes note that a deadline was missed without a suspect; the second time in a row is an error. */
    synchronized void missedDeadline(String seconds) {
        deadlines++;
        if (deadlines >= DEADLINE_LIMIT) {
            throw OperatorFailure.of("W411", "worker", settings.worker(), "seconds", seconds, "stage", "s0");
        }
    }

    /** Raises what a worker has reported, unless trying again may help. */
    public synchronized void failed(Failure failure, int generation) {
        retries++;
        OperatorFailure error = OperatorFailure.reported(settings.worker(), failure);
        if (!failure.getRetriable() || retries > RETRY_LIMIT) {
            throw error;
        }
        throw WorkerGone.ended(generation, null, error);
    }

    /** Takes note that a stream is open. */
    void open(WorkerStream<?, ?> stream) {
        streams.add(stream);
    }

    /** Takes note that a stream is closed. */
    void closed(WorkerStream<?, ?> stream) {
        streams.remove(stream);
    }

    /** Returns the other streams of a stream's process that have a message in flight, each with what its file says. */
    Map<WorkerStream<?, ?>, FlightFile.Mark> inFlight(WorkerStream<?, ?> asking) {
        Map<WorkerStream<?, ?>, FlightFile.Mark> found = new HashMap<>();
        for (WorkerStream<?, ?> stream : streams) {
            if (stream != asking && stream.generation() == asking.generation()) {
                FlightFile.Mark mark = stream.flight().read();
                if (mark.message() != 0) {
                    found.put(stream, mark);
                }
            }
        }
        return found;
    }

    /** Returns the endpoint for a bucket or a number of data. */
    synchronized ManagedChannel endpoint(int number) {
        connect();
        return endpoints.get(number % endpoints.size());
    }

    /** Takes note that a call was answered: earlier failures count no more. */
    public synchronized void progressed() {
        broken = 0;
        retries = 0;
        deadlines = 0;
    }

    /**
     * Waits until another process of the worker serves.
     *
     * @param gone says which one does not
     */
    public synchronized void recover(WorkerGone gone) {
        if (process == null || gone.generation() != process.generation()) {
            return; // another operator was here before
        }
        broken++;
        if (broken > BROKEN_LIMIT) {
            throw brokeRules("its streams broke " + broken + " times in a row; last: " + gone.getCause().getMessage());
        }
        int left = process.generation();
        close();
        supervisor.recover(left);
    }

    /** Returns the error of a worker that does not follow the protocol. */
    public OperatorFailure brokeRules(String reason) {
        return OperatorFailure.of("W410", "worker", settings.worker(), "reason", reason);
    }

    /** Returns what checks the outputs of a stage. */
    public Audit audit(Stage stage) {
        return new Audit(stage, settings.worker());
    }

    private void connect() {
        if (process != null && ProcessHandle.of(process.pid()).isPresent()) {
            return;
        }
        close();
        Supervisor.Process found = supervisor.await();
        Path socket = Path.of(settings.workerDirectory(), "worker.sock");
        ManagedChannel first = Channels.open(socket.toString());
        process = found;
        InitReply reply;
        try {
            reply = init(first);
        } catch (ReplyQueue.StreamEnded error) {
            first.shutdownNow();
            WorkerGone gone = WorkerGone.ended(found.generation(), null, error);
            recover(gone);
            connect();
            return;
        } catch (RuntimeException error) { // as of an engine that ends meanwhile: the next one shakes hands again
            first.shutdownNow();
            close();
            throw error;
        }
        List<ManagedChannel> channels = new ArrayList<>(List.of(first));
        for (String target : reply.getEndpointsList()) {
            String path = target.substring(UNIX.length());
            if (!path.equals(socket.toString())) {
                channels.add(Channels.open(path));
            }
        }
        endpoints = channels;
    }

    private InitReply init(ManagedChannel channel) {
        ReplyQueue<InitRequest, InitReply> call = new ReplyQueue<>(channel, INIT);
        call.send(settings.init());
        call.halfClose();
        InitReply reply = call.poll(INIT_MS);
        if (reply == null) {
            throw brokeRules("no answer to the handshake");
        }
        if (reply.hasFailure()) {
            throw OperatorFailure.reported(settings.worker(), reply.getFailure());
        }
        return reply;
    }

    private void close() {
        endpoints.forEach(ManagedChannel::shutdownNow);
        endpoints = List.of();
        process = null;
    }
}
