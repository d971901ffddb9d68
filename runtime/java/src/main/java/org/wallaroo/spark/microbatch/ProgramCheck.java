package org.wallaroo.spark.microbatch;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import org.apache.spark.TaskContext;
import org.wallaroo.spark.bucket.SparkBucketStore;
import org.wallaroo.spark.query.AppliedSettings;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.worker.WorkerHome;

/**
 * Checks that the program of {@code apply} can read the states in the checkpoint of the user's query. It compares facts
 * about each state (its class, key and others) with the facts that the partition's store has kept.
 *
 * <p>The check runs in tasks, because only they know the checkpoint. {@code plan/kept_state.py} decides which changes
 * of the program are refused.
 */
record ProgramCheck(Settings settings, int level) {
    /**
     * Compares the facts about the present program with those in the partition's store. If they differ and the change
     * is safe, stores the present facts.
     *
     * @throws OperatorFailure R716 if the number of partitions, or anything else on which states depend, has changed
     */
    void check(SparkBucketStore store) {
        // Spark's number of tasks may be another: a task may serve a union of operators, or have several partitions.
        String partitions = TaskContext.get().getLocalProperty(Attempt.STORES);
        if (!String.valueOf(settings.targets().size()).equals(partitions)) {
            throw refused("spark.sql.shuffle.partitions was " + settings.targets().size() + " when `apply` was called; it has "
                    + partitions + " partitions", "set it to " + partitions + " before `apply`");
        }
        AppliedSettings applied = settings.applied();
        JsonNode now = applied.facts().get(level);
        byte[] kept = store.facts();
        JsonNode before = Json.parse(kept == null ? "{}" : new String(kept, StandardCharsets.UTF_8));
        if (now.equals(before)) {
            return;
        }
        if (!before.isEmpty()) {
            JsonNode found = WorkerHome.runModule(
                    settings.levels().get(level).get(0).start(), "wallaroo_runtime.plan.kept_state",
                    Json.object("before", before, "now", now, "accepts_changed", applied.acceptsChanged()));
            if (!found.isEmpty()) {
                throw refused(found.path("reason").asText(), found.path("fix").asText());
            }
        }
        store.storeFacts(Json.write(now).getBytes(StandardCharsets.UTF_8));
    }

    private static OperatorFailure refused(String reason, String fix) {
        return OperatorFailure.of("R716", "what", "the checkpoint of the query", "reason", reason,
                "fix", fix + ", or use a new checkpoint");
    }
}
