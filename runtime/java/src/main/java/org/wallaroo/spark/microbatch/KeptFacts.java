package org.wallaroo.spark.microbatch;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.TaskContext;
import org.wallaroo.spark.bucket.SparkBucketStore;
import org.wallaroo.spark.query.Applied;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;

/**
 * What a query to which an application is applied keeps of the program in its checkpoint, next to the states: a program
 * that is changed must find them as it would write them.
 *
 * <p>Nobody but a task knows which checkpoint it is.
 */
record KeptFacts(Settings settings, int level) {
    private static final String NEEDED = "!"; // at the end of a field's type: states without the field cannot be read
    private static final Pattern FIELD = Pattern.compile("the field \"(?:.*\\.)?(?<name>.*)\" of (?<state>state \".*\")");

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
        byte[] kept = store.facts();
        Map<String, String> now = new Applied(settings).facts(level);
        Map<String, String> before = new TreeMap<>();
        if (kept != null) {
            Json.parse(new String(kept, StandardCharsets.UTF_8)).properties()
                    .forEach(each -> before.put(each.getKey(), each.getValue().asText()));
        }
        before.forEach((name, value) -> {
            if (!type(value).equals(type(now.getOrDefault(name, "none")))) {
                throw refused(name + " was written as " + type(value) + "; the program now has "
                        + type(now.getOrDefault(name, "none")), "change it back");
            }
        });
        now.forEach((name, value) -> {
            Matcher field = FIELD.matcher(name);
            if (value.endsWith(NEEDED) && !before.containsKey(name) && field.matches()
                    && before.containsKey(field.group("state"))) {
                throw refused(name + " is new, and the states that were kept have none", "give it a value in the class's "
                        + "body, such as `" + field.group("name") + " = None` (no default_factory)");
            }
        });
        if (!now.equals(before)) {
            store.note(Json.write(now).getBytes(StandardCharsets.UTF_8));
        }
    }

    private static String type(String fact) {
        return fact.endsWith(NEEDED) ? fact.substring(0, fact.length() - 1) : fact;
    }

    private static OperatorFailure refused(String reason, String fix) {
        return OperatorFailure.said("R716", "what", "the checkpoint of the query", "reason", reason,
                "fix", fix + ", or use a new checkpoint");
    }
}
