package org.wallaroo.spark.query;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import wallaroo.worker.v1.WorkerOuterClass.InitRequest;
import wallaroo.worker.v1.WorkerOuterClass.Opening;

/**
 * The driver's settings of a stage and its worker.
 *
 * @param worker name of the worker
 * @param workerDirectory private directory of the worker, with its supervisor's socket; empty if tasks start the worker
 * @param start request with which tasks start a worker that the driver has not started
 * @param deadlineMs milliseconds for which a call may make no progress
 * @param init request of the handshake with the worker
 * @param opening first message of each stream to the worker
 * @param hasState whether the stage has state
 * @param entries ports of the frames that enter the stage
 * @param block number of the stage's first block. A block is a range of numbers, one for each bucket: they name the
 *     bucket in Spark's store, and are the origins of its outputs
 * @param flushBytes bytes of frames after which a bucket's call ends, since it keeps its frames for a repetition
 * @param sampledBelow number that selects the reported traces, see {@code TraceParent}; 0 for none
 */
public record StageSettings(
        String worker, String workerDirectory, JsonNode start, long deadlineMs, InitRequest init, Opening opening,
        boolean hasState, List<Integer> entries, int block, long flushBytes, long sampledBelow) {}
