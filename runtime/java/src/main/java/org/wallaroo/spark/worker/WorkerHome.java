package org.wallaroo.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkContext$;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkFiles;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.StageSettings;
import org.wallaroo.spark.rpc.ReplyQueue;
import scala.Option;

/**
 * The place where the supervisor of a worker listens. On an executor, the first task that needs a worker starts it.
 *
 * <p>A Python program ({@code worker/executor.py}) unpacks the application, starts the supervisor, checks the worker.
 */
public final class WorkerHome {
    private static final Map<JsonNode, WorkerHome> STARTED = new ConcurrentHashMap<>(); // by request

    private final Path directory;
    private final String target;

    WorkerHome(Path directory, String target) {
        this.directory = directory;
        this.target = target;
    }

    /** Returns the home of a worker. Starts the worker here if neither the driver nor another task has started it. */
    public static WorkerHome of(StageSettings worker) {
        return worker.workerDirectory().isEmpty()
                ? STARTED.computeIfAbsent(worker.start(), WorkerHome::start)
                : new WorkerHome(Path.of(worker.workerDirectory()), "");
    }

    /** Starts a new supervisor for a worker whose supervisor has ended, unless another task has done so. */
    static void startAgain(StageSettings worker) {
        start(worker.start());
    }

    /** Returns the homes of the workers that this virtual machine has started. */
    static Map<JsonNode, WorkerHome> started() {
        return STARTED;
    }

    Path directory() {
        return directory;
    }

    /** Returns the gRPC target of the worker's first endpoint. */
    public String target() {
        return target;
    }

    private static WorkerHome start(JsonNode request) {
        JsonNode found = runModule(request, "wallaroo_runtime.worker.executor", request.toString());
        if (found.has("diagnostics")) {
            throw OperatorFailure.found(found.path("diagnostics"));
        }
        WorkerHome home = new WorkerHome(Path.of(found.path("directory").asText()), found.path("target").asText());
        Option<SparkContext> context = SparkContext$.MODULE$.getActive();
        if (SparkEnv.get() == null || context.isDefined() && context.get().isStopped()) {
            new SupervisorClient(home.directory, () -> { }).stop(); // tasks outlive Spark; `stopAll` may miss this worker
            throw new IllegalStateException("Spark is being stopped");
        }
        return home;
    }

    /**
     * Runs a Python module of the runtime in a process, and returns its answer.
     *
     * @param start request with which the worker is started, see {@link StageSettings}
     * @param module name of the module
     * @param request JSON for the module's standard input
     */
    public static JsonNode runModule(JsonNode start, String module, String request) {
        String python = start.path("python").asText();
        try {
            ProcessBuilder builder = new ProcessBuilder(
                    List.of(python, "-m", module, SparkFiles.getRootDirectory()))
                    .redirectError(ProcessBuilder.Redirect.INHERIT);
            builder.environment().put("PYTHONSAFEPATH", "1"); // no imports of the current directory, from Python 3.11 on
            Process process = builder.start();
            process.getOutputStream().write(request.getBytes(StandardCharsets.UTF_8));
            process.getOutputStream().close();
            String answer = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            int status = process.waitFor();
            if (status != 0) {
                throw refused(start, python + " ended with status " + status + " before " + module + " had answered");
            }
            return Json.parse(answer);
        } catch (IOException error) {
            throw refused(start, error.getMessage());
        } catch (InterruptedException error) {
            throw ReplyQueue.interrupted(error);
        }
    }

    private static OperatorFailure refused(JsonNode start, String reason) {
        return OperatorFailure.of("W401", "worker", start.path("spec").path("name").asText(), "reason", reason, "fix",
                "install the runtime for that interpreter on every machine of the cluster");
    }
}
