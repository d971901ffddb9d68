package org.wallaroo.spark.worker;

import io.grpc.Metadata;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.MethodDescriptor;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.StageSettings;
import org.wallaroo.spark.rpc.Channels;
import wallaroo.worker.v1.WorkerOuterClass.Failure;
import wallaroo.worker.v1.WorkerOuterClass.Opening;
import wallaroo.worker.v1.WorkerOuterClass.Reply;
import wallaroo.worker.v1.WorkerOuterClass.Request;
import wallaroo.worker.v1.WorkerOuterClass.Stage;

/** A task's way to a worker, over the connection that all tasks share. It counts the task's failures in succession. */
public final class WorkerChannel {
    public static final MethodDescriptor<Request, Reply> PROCESS = method("Process");
    public static final MethodDescriptor<Request, Reply> PROCESS_STATE = method("ProcessState");
    private static final int RETRY_LIMIT = 3;
    private static final int DEADLINE_LIMIT = 2;
    private final StageSettings settings;
    private final WorkerConnection connection;
    private int broken;
    private int retries;
    private int deadlines;

    public WorkerChannel(StageSettings settings) {
        this.settings = settings;
        this.connection = WorkerConnection.of(settings);
    }

    private static MethodDescriptor<Request, Reply> method(String name) {
        return Channels.method(
                "wallaroo.worker.v1.Worker/" + name, MethodType.BIDI_STREAMING, Request.parser(), Reply.parser());
    }

    /** Returns the number of the worker's endpoints (sockets), among which calls are divided. */
    public int width() {
        return connection.width();
    }

    WorkerConnection connection() {
        return connection;
    }

    /**
     * Records the message that is suspected of having ended the worker, so that the repeated call may skip it.
     *
     * @param quarantine of the call
     * @param suspect the message
     * @throws OperatorFailure W415 if no message is the cause, and a repetition cannot help
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
            connection.supervisor().excuse(2);
        }
    }

    /** Counts a missed deadline without a suspect. Raises W411 at the second one if no answer came after the first. */
    synchronized void missedDeadline(String seconds, String stage) {
        deadlines++;
        if (deadlines >= DEADLINE_LIMIT) {
            throw OperatorFailure.of("W411", "worker", settings.worker(), "seconds", seconds, "stage", stage);
        }
    }

    /** Raises the error that a worker has reported, or {@link WorkerGone} if a repetition of the call may help. */
    public synchronized void failed(Failure failure, int generation) {
        retries++;
        OperatorFailure error = OperatorFailure.reported(settings.worker(), failure);
        if (!failure.getRetriable() || retries > RETRY_LIMIT) {
            throw error;
        }
        throw WorkerGone.serving(generation, error);
    }

    /** Returns the metadata of a stream's gRPC call: the tracing span of its stage. */
    Metadata metadata(Opening opening) {
        return TraceParent.of(opening, settings.sampledBelow());
    }

    /** Records that a call was answered, and forgets earlier failures. */
    public synchronized void progressed() {
        broken = 0;
        retries = 0;
        deadlines = 0;
    }

    /**
     * Counts the break of a stream, and waits until a process of the worker serves again.
     *
     * @param gone names the process whose streams broke; if this process still serves, nothing happens
     */
    public synchronized void recover(WorkerGone gone) {
        if (gone.isServing()) {
            return;
        }
        broken += gone.isExcused() ? 0 : 1;
        connection.checkCount(broken, gone.getCause());
        connection.recover(gone);
    }

    /** Returns the error of a worker that does not follow the protocol. */
    public OperatorFailure brokeRules(String reason) {
        return connection.brokeRules(reason);
    }

    /** Checks that a reply belongs to the call that is awaited. */
    public void checkIndex(long index, long expected) {
        if (index != expected) {
            throw brokeRules("a reply of call " + index + " came out of turn; call " + expected + " is not done");
        }
    }

    /** Returns the audit of a stage's outputs. */
    public Audit audit(Stage stage) {
        return new Audit(stage, settings.worker());
    }
}
