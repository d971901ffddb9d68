package org.wallaroo.spark.microbatch;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import org.apache.spark.TaskContext;
import org.wallaroo.spark.bucket.SparkBucketStore;
import org.wallaroo.spark.query.Applied;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.worker.WorkerHome;

/**
 * What a query to which an application is applied keeps of the program in its checkpoint, next to the states: a program
 * that is changed must be able to read them.
 *
 * <p>Nobody but a task knows which checkpoint it is. Which changes are refused is for {@code plan/kept.py} to say.
 */
record KeptFacts(Settings settings, int level) {
    /**
     * Compares with the facts that the partition keeps, and notes new ones.
     *
     * @throws OperatorFailure R716, something has changed that the states depend on, or Spark has other partitions
     */
    void check(SparkBucketStore store) {
        // A task may be of a union of operators, or have several partitions of one: it has another number of its own.
        String partitions = TaskContext.get().getLocalProperty(Attempt.STORES);
        if (!String.valueOf(settings.targets().size()).equals(partitions)) {
            throw refused("spark.sql.shuffle.partitions was " + settings.targets().size() + " when `apply` was called; it has "
                    + partitions + " partitions", "set it to " + partitions + " before `apply`");
        }
        Applied applied = Applied.of(settings);
        JsonNode now = applied.facts().get(level);
        byte[] kept = store.facts();
        JsonNode before = Json.parse(kept == null ? "{}" : new String(kept, StandardCharsets.UTF_8));
        if (now.equals(before)) {
            return;
        }
        if (!before.isEmpty()) {
            JsonNode found = WorkerHome.answer(settings.stages(level).get(0).start(), "wallaroo_runtime.plan.kept",
                    Json.object("before", before, "now", now, "accepts_changed", applied.accepts_changed()));
            if (!found.isEmpty()) {
                throw refused(found.path("reason").asText(), found.path("fix").asText());
            }
        }
        store.note(Json.write(now).getBytes(StandardCharsets.UTF_8));
    }

    private static OperatorFailure refused(String reason, String fix) {
        return OperatorFailure.said("R716", "what", "the checkpoint of the query", "reason", reason,
                "fix", fix + ", or use a new checkpoint");
    }
}
