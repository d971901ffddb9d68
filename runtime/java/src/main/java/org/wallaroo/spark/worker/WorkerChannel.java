package org.wallaroo.spark.worker;

import com.google.protobuf.MessageLite;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import org.apache.spark.SparkEnv;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.rpc.Channels;
import org.wallaroo.spark.rpc.ReplyQueue;
import wallaroo.worker.v1.WorkerOuterClass.Failure;
import wallaroo.worker.v1.WorkerOuterClass.Opening;
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
    private static final Set<Status.Code> BROKEN = Set.of(Status.Code.UNAVAILABLE, Status.Code.CANCELLED,
            Status.Code.INTERNAL, Status.Code.ABORTED, Status.Code.DATA_LOSS);
    // What a program says that ends for want of memory.
    private static final Pattern NO_MEMORY = Pattern.compile(
            "MemoryError|out of memory|[Cc]annot allocate memory|bad_alloc|pthread_create failed");
    private static final int BROKEN_LIMIT = 30;
    private static final int RETRY_LIMIT = 3;
    private static final int DEADLINE_LIMIT = 2;
    private static final Map<Path, WorkerChannel> OPEN = new ConcurrentHashMap<>();
    private static final Map<String, String> ENDINGS = new ConcurrentHashMap<>(); // by process, for the driver to report

    private final Settings settings;
    private final Path directory;
    private final Supervisor supervisor;
    private Supervisor.Process process;
    private final Set<WorkerStream<?, ?>> streams = ConcurrentHashMap.newKeySet();
    private List<ManagedChannel> endpoints = List.of();
    private int broken;
    private int retries;
    private int deadlines;

    private WorkerChannel(Settings settings, Path directory) {
        this.settings = settings;
        this.directory = directory;
        this.supervisor = new Supervisor(directory, () -> WorkerHome.startAgain(settings));
    }

    /** Returns the channel of this virtual machine to the worker of a query; it stays open across batches. */
    public static WorkerChannel of(Settings settings) {
        return OPEN.computeIfAbsent(WorkerHome.of(settings).directory(), path -> new WorkerChannel(settings, path));
    }

    /** Starts the worker of a stage where this task runs; returns its name and the gRPC target of its first endpoint. */
    public static List<String> start(Settings stage) {
        return List.of(stage.worker(), WorkerHome.of(stage).target());
    }

    /** Ends all workers that tasks have started here. */
    public static void stopAll() {
        WorkerHome.started().forEach(home -> {
            WorkerChannel open = OPEN.remove(home.directory());
            if (open != null) {
                open.close();
                open.supervisor.stop();
            }
        });
        WorkerHome.started().clear();
    }

    /** Returns which processes of workers have ended by themselves since the last call, in words. */
    public static Map<String, String> takeEndings() {
        Map<String, String> found = new HashMap<>(ENDINGS);
        found.keySet().forEach(ENDINGS::remove);
        return found;
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
        return directory;
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
            throw OperatorFailure.of("W415", "worker", settings.worker(), "doing",
                    suspect.note().isEmpty() ? "read or wrote states" : suspect.note(), "reason", reason);
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
    synchronized void missedDeadline(String seconds, String stage) {
        deadlines++;
        if (deadlines >= DEADLINE_LIMIT) {
            throw OperatorFailure.of("W411", "worker", settings.worker(), "seconds", seconds, "stage", stage);
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

    /** Returns what is sent with the calls of a stream. */
    Metadata metadata(Opening opening) {
        return TraceParent.of(opening, settings.sampledBelow());
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
        broken += gone.isExcused() ? 0 : 1;
        if (broken > BROKEN_LIMIT) {
            throw brokeRules("its streams broke " + broken + " times in a row; last: " + gone.getCause().getMessage());
        }
        Supervisor.Process left = process;
        close();
        Supervisor.Process following = supervisor.recover(left.generation());
        if (gone.ending() != null) {
            ENDINGS.put(place() + ", process " + left.pid(), gone.told(settings.worker(), left.pid(), following.pid()));
        }
    }

    /**
     * Checks that the end of a stream tells of a lost process, whose calls another one may answer.
     *
     * @throws OperatorFailure W417, the worker had no memory left; W410, it broke a rule
     */
    void checkBroken(ReplyQueue.StreamEnded error) {
        if (error.status().isOk()) {
            throw brokeRules("it ended a stream that was not finished");
        }
        if (!BROKEN.contains(error.status().getCode())) {
            throw NO_MEMORY.matcher(error.getMessage()).find()
                    ? OperatorFailure.of("W417", "reason", error.getMessage())
                    : brokeRules(error.getMessage());
        }
    }

    private static String place() {
        SparkEnv spark = SparkEnv.get();
        return spark == null || spark.executorId().equals("driver") ? "driver"
                : spark.executorId() + " on " + spark.rpcEnv().address().host();
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
        process = supervisor.await();
        try {
            endpoints = new Handshake(settings).all(directory.resolve("worker.sock"));
        } catch (ReplyQueue.StreamEnded error) {
            checkBroken(error);
            recover(WorkerGone.ended(process.generation(), null, error));
            connect();
        } catch (RuntimeException error) { // as of an engine that ends meanwhile: the next one shakes hands again
            close();
            throw error;
        }
    }

    private void close() {
        endpoints.forEach(ManagedChannel::shutdownNow);
        endpoints = List.of();
        process = null;
    }
}
