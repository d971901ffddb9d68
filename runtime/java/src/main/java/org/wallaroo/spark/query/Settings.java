package org.wallaroo.spark.query;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.wallaroo.spark.message.Origins;

/**
 * The driver's settings of a query, which tasks get as text. Settings of the other mode are 0 or null.
 *
 * @param text the settings as a JSON object, which {@code spark/operators.py} or {@code spark/realtime/settings.py}
 *     writes; it also identifies the query
 * @param levels for each level its stages, in the order in which they run; level 0 runs the sources, and each later
 *     level begins with state
 * @param controls ports of the control messages (ticks, visits) that at least one stage takes
 * @param topics topics that the journal has, by port
 * @param timedTopics ports of topics that are not tables; their latency is measured from the times of their records
 * @param policy rule for dead letters that end the query
 * @param applied settings of an applied application; null for any other application, whose last level stages its output
 * @param records sources that Spark reads, in the order of their datasets
 * @param controlsPrecede whether visits precede all messages of a micro-batch, and its tick follows them
 * @param targets for each partition the key by which Spark's shuffle brings rows to this partition
 * @param laterPorts for each level the ports of the frames that later levels take
 * @param journals place of each journal of a query in micro-batches
 * @param parts largest number of tasks that share a micro-batch of a journal
 * @param waitMs time that Spark waits for the next message before it looks at other sources
 * @param staging directory of staged files; empty if the egress takes the output
 * @param egress Unix socket of the egress, or HOST:PORT of a remote one
 * @param egressEpoch epoch of the driver at the egress
 * @param journal directory of the journal in real-time mode; empty if the gateway sends the journal
 * @param journalId id of this journal in hexadecimal digits
 * @param gateway Unix socket of the gateway, or HOST:PORT of a remote one
 * @param gatewayEpoch epoch of the driver at the gateway
 * @param rowBytes largest number of bytes of the journal in one row
 * @param batchBytes bytes of the journal after which a batch ends early
 * @param batchMs milliseconds after which a batch with input ends
 * @param idleMs length of a pause in milliseconds after which a batch ends early, if the batch has had input
 * @param flushMs milliseconds after which open calls end
 */
public record Settings(
        String text, List<List<StageSettings>> levels, Set<Integer> controls, Map<Integer, Origins.Topic> topics,
        Set<Integer> timedTopics, ErrorPolicy policy, AppliedSettings applied, List<RecordSource> records,
        boolean controlsPrecede, List<Integer> targets, List<Set<Integer>> laterPorts, List<JsonNode> journals,
        int parts, long waitMs, String staging, String egress, long egressEpoch, String journal, String journalId,
        String gateway, long gatewayEpoch, int rowBytes, long batchBytes, long batchMs, long idleMs, long flushMs) implements Serializable {
    /** Reads settings from their text. Spark serializes them as this text, too. */
    public static Settings of(String text) {
        return Json.read(((ObjectNode) Json.parse(text)).put("text", text), Settings.class);
    }

    private Object writeReplace() {
        return new Text(text);
    }

    private record Text(String text) implements Serializable {
        private Object readResolve() {
            return of(text);
        }
    }
}
