package org.wallaroo.spark.worker;

import io.grpc.ManagedChannel;
import io.grpc.Status;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.logging.Logger;
import java.util.regex.Pattern;
import org.apache.spark.SparkEnv;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.StageSettings;
import org.wallaroo.spark.rpc.ReplyQueue;

/** The connections from this JVM to one worker. All tasks of the JVM share them; they stay open across batches. */
public final class WorkerConnection {
    private static final Logger LOG = Logger.getLogger(WorkerConnection.class.getName()); // Spark's own log
    private static final int BROKEN_LIMIT = 30; // times that streams may break in succession
    private static final Set<Status.Code> BROKEN = Set.of(Status.Code.UNAVAILABLE, Status.Code.CANCELLED,
            Status.Code.INTERNAL, Status.Code.ABORTED, Status.Code.DATA_LOSS);
    // Messages of programs that lack memory.
    private static final Pattern NO_MEMORY = Pattern.compile(
            "MemoryError|out of memory|[Cc]annot allocate memory|bad_alloc|pthread_create failed");
    private static final Map<Path, WorkerConnection> OPEN = new ConcurrentHashMap<>();
    private static final Map<String, String> ENDINGS = new ConcurrentHashMap<>(); // by process, until reported

    private final StageSettings settings;
    private final Path directory;
    private final SupervisorClient supervisor;
    private final Set<WorkerStream> streams = ConcurrentHashMap.newKeySet();
    private SupervisorClient.Process process;
    private SupervisorClient.Process left; // served before; its unanswered calls are not reported to the supervisor yet
    private List<ManagedChannel> endpoints = List.of();

    /**
     * An endpoint of a process.
     *
     * @param channel to the endpoint
     * @param generation number of the worker's process, counted from 1
     */
    record Endpoint(ManagedChannel channel, int generation) {}

    private WorkerConnection(StageSettings settings, Path directory) {
        this.settings = settings;
        this.directory = directory;
        this.supervisor = new SupervisorClient(directory, () -> WorkerHome.startAgain(settings));
    }

    /** Returns the connection to the worker of a stage. Starts the worker if tasks must start it. */
    static WorkerConnection of(StageSettings settings) {
        return OPEN.computeIfAbsent(WorkerHome.of(settings).directory(), path -> new WorkerConnection(settings, path));
    }

    /** Ends all workers that this virtual machine has started, also those that no task has used. */
    public static void stopAll() {
        WorkerHome.started().values().forEach(home -> {
            WorkerConnection open = OPEN.remove(home.directory());
            if (open != null) {
                open.close();
            }
            new SupervisorClient(home.directory(), () -> { }).stop();
        });
        WorkerHome.started().clear();
    }

    /** Returns a text for each process of a worker that has ended by itself since the last call of this method. */
    public static Map<String, String> takeEndings() {
        Map<String, String> taken = new HashMap<>();
        for (String process : ENDINGS.keySet()) { // tasks call this at the same time, and only one gets an ending
            String text = ENDINGS.remove(process);
            if (text != null) {
                taken.put(process, text);
            }
        }
        return taken;
    }

    /** Takes back texts that were not reported, so that the next {@link #takeEndings} returns them again. */
    public static void giveEndings(Map<String, String> endings) {
        ENDINGS.putAll(endings);
    }

    SupervisorClient supervisor() {
        return supervisor;
    }

    Path directory() {
        return directory;
    }

    /** Returns the number of the worker's endpoints. */
    synchronized int width() {
        connect();
        return endpoints.size();
    }

    /** Returns the endpoint for a stream, by the number of its bucket; without state, by the number of the stream. */
    synchronized Endpoint endpoint(int number) {
        connect();
        return new Endpoint(endpoints.get(number % endpoints.size()), process.generation());
    }

    /** Records that a stream is open. */
    void opened(WorkerStream stream) {
        streams.add(stream);
    }

    /** Records that a stream is closed. */
    void closed(WorkerStream stream) {
        streams.remove(stream);
    }

    /** Returns the open streams of all tasks to a process. */
    List<WorkerStream> streams(int generation) {
        List<WorkerStream> found = new ArrayList<>(streams);
        found.removeIf(stream -> stream.generation() != generation);
        return found;
    }

    /**
     * Waits until another process of the worker serves. Another task may be connected to that process already.
     *
     * @param gone names the process that no longer serves
     */
    synchronized void recover(WorkerGone gone) {
        if (process != null && gone.generation() == process.generation()) {
            close();
        }
        SupervisorClient.Process ended = left;
        if (ended == null || gone.generation() != ended.generation()) {
            return; // another task has done so already
        }
        left = null;
        SupervisorClient.Process following = supervisor.recover(ended.generation());
        if (gone.ending() != null) {
            String text = gone.told(settings.worker(), ended.pid(), following.pid());
            LOG.warning(text); // in an applied application nobody calls takeEndings
            ENDINGS.put(place() + ", process " + ended.pid(), text);
        }
    }

    /**
     * Checks that a stream ended because the worker's process was lost, so that another process may answer the calls.
     *
     * @throws OperatorFailure W417 if the worker had no memory left; W410 if it broke a rule
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

    /**
     * Checks that streams did not break too many times in succession.
     *
     * @throws OperatorFailure W410 if they did
     */
    void checkCount(int broken, Throwable last) {
        if (broken > BROKEN_LIMIT) {
            throw brokeRules("its streams broke " + broken + " times in a row; last: " + last.getMessage());
        }
    }

    private static String place() {
        SparkEnv spark = SparkEnv.get();
        return spark == null || spark.executorId().equals("driver") ? "driver"
                : spark.executorId() + " on " + spark.rpcEnv().address().host();
    }

    /** Returns the error of a worker that does not follow the protocol. */
    OperatorFailure brokeRules(String reason) {
        return OperatorFailure.of("W410", "worker", settings.worker(), "reason", reason);
    }

    private void connect() {
        for (int broken = 1; endpoints.isEmpty() || ProcessHandle.of(process.pid()).isEmpty(); broken++) {
            close();
            process = supervisor.await();
            try {
                endpoints = new Handshake(settings).all(directory.resolve("worker.sock"));
            } catch (ReplyQueue.StreamEnded error) {
                checkBroken(error);
                checkCount(broken, error);
                supervisor.recover(process.generation());
            } catch (RuntimeException error) { // an engine may end meanwhile; the next one repeats the handshake
                close();
                throw error;
            }
        }
    }

    private void close() {
        if (!endpoints.isEmpty()) {
            left = process;
        }
        endpoints.forEach(ManagedChannel::shutdownNow);
        endpoints = List.of();
        process = null;
    }
}
