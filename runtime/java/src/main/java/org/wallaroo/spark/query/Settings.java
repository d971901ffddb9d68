package org.wallaroo.spark.query;

import com.fasterxml.jackson.databind.JsonNode;
import com.google.protobuf.InvalidProtocolBufferException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.wallaroo.spark.message.JournalOrigins;
import org.wallaroo.spark.message.Origins;
import wallaroo.worker.v1.WorkerOuterClass.InitRequest;
import wallaroo.worker.v1.WorkerOuterClass.Opening;

/** The driver's settings of a query, which tasks get as text. */
public final class Settings implements Serializable {
    private static final long serialVersionUID = 1L;

    private final String text;
    private transient JsonNode value;

    /**
     * Makes settings.
     *
     * @param text a JSON object, which {@code spark/operators.py} or {@code spark/realtime/settings.py} writes
     */
    public Settings(String text) {
        this.text = text;
    }

    JsonNode value() {
        if (value == null) {
            value = Json.parse(text);
        }
        return value;
    }

    private JsonNode get(String name) {
        JsonNode found = value().get(name);
        if (found == null) {
            throw new IllegalArgumentException("the driver has not set " + name);
        }
        return found;
    }

    public String text() {
        return text;
    }

    /** Returns the directory of the journal; empty if the gateway sends the journal. */
    public String journal() {
        return get("journal").asText();
    }

    /** Returns the id of the journal. */
    public long journalId() {
        return Long.parseUnsignedLong(get("journal_id").asText(), 16);
    }

    /** Returns the Unix socket of the gateway, or HOST:PORT of a remote one. */
    public String gateway() {
        return get("gateway").asText();
    }

    /** Returns the epoch of the driver at the gateway. */
    public long gatewayEpoch() {
        return get("gateway_epoch").asLong();
    }

    /** Returns the Unix socket of the egress, or HOST:PORT of a remote one. */
    public String egress() {
        return get("egress").asText();
    }

    /** Returns the epoch of the driver at the egress. */
    public long egressEpoch() {
        return get("egress_epoch").asLong();
    }

    /** Returns the name of the worker. */
    public String worker() {
        return get("worker").asText();
    }

    /** Returns the private directory of the worker, with its supervisor's socket; empty if tasks start the worker. */
    public String workerDirectory() {
        return get("worker_directory").asText();
    }

    /** Returns the spec, as JSON, from which tasks start a worker that the driver has not started. */
    public String start() {
        return get("start").toString();
    }

    /** Returns the number that selects the reported traces, see {@code TraceParent}; 0 for none. */
    public long sampledBelow() {
        JsonNode found = value().path("sampled_below");
        return found.isMissingNode() ? 0 : Long.parseUnsignedLong(found.asText());
    }

    /** Returns the milliseconds for which a call may make no progress. */
    public long deadlineMs() {
        return get("deadline_ms").asLong();
    }

    /** Returns the request of the handshake with the worker. */
    public InitRequest init() {
        return parsed("init", InitRequest.parser());
    }

    /** Returns the number of levels of the plan. The first one runs the sources. Each later one begins with state. */
    public int levels() {
        return get("levels").size();
    }

    /**
     * Returns the stages of a level, in the order in which they run.
     *
     * @param level counted from 0
     */
    public List<Settings> stages(int level) {
        List<Settings> stages = new ArrayList<>();
        get("levels").get(level).forEach(stage -> stages.add(new Settings(stage.toString())));
        return stages;
    }

    /** Returns the ports of the control messages (ticks, visits) that at least one stage takes. */
    public Set<Integer> controls() {
        return new HashSet<>(numbers(get("controls")));
    }

    /** Returns the origins of messages of the topics that the journal has. */
    public Origins origins() {
        Map<Integer, Origins.Topic> topics = new HashMap<>();
        get("topics").properties().forEach(each -> topics.put(Integer.valueOf(each.getKey()),
                new Origins.Topic(each.getValue().get("source").asText(), each.getValue().get("topic").asText())));
        return new JournalOrigins(topics);
    }

    /** Returns the ports of topics that are not tables. Their latency is measured from the times of their records. */
    public Set<Integer> timedTopics() {
        Set<Integer> ports = new HashSet<>();
        for (var topic : get("topics").properties()) {
            if (!topic.getValue().get("is_table").asBoolean()) {
                ports.add(Integer.valueOf(topic.getKey()));
            }
        }
        return ports;
    }

    /** Returns the opening of a stream of this stage. */
    public Opening opening() {
        return parsed("opening", Opening.parser());
    }

    /** Says whether this stage has state. */
    public boolean hasState() {
        return get("has_state").asBoolean();
    }

    /** Returns the ports of the frames that enter this stage. */
    public List<Integer> entries() {
        return numbers(get("entries"));
    }

    /** Returns the number of this stage's first block of origins. A block has one origin for each bucket. */
    public int block() {
        return get("block").asInt();
    }

    /** Returns the rule for dead letters that end the query. */
    public ErrorPolicy errorPolicy() {
        Map<String, Boolean> parts = new HashMap<>();
        get("fails_at").properties().forEach(part -> parts.put(part.getKey(), part.getValue().asBoolean()));
        return new ErrorPolicy(get("fails").asBoolean(), parts);
    }

    /** Returns for each partition the key by which Spark's shuffle brings rows to this partition. */
    public List<Integer> targets() {
        return numbers(get("targets"));
    }

    /** Returns the ports of the frames that levels after {@code level} take. */
    public Set<Integer> laterPorts(int level) {
        return new HashSet<>(numbers(get("later_ports").get(level)));
    }

    /** Returns the place of each journal, as JSON. */
    public List<String> journals() {
        List<String> found = new ArrayList<>();
        get("journals").forEach(journal -> found.add(journal.toString()));
        return found;
    }

    /** Returns the sources that Spark reads, in the order of their datasets. */
    public List<RecordSource> records() {
        List<RecordSource> found = new ArrayList<>();
        get("records").forEach(source -> found.add(Json.read(source, RecordSource.class)));
        return found;
    }

    /** Says whether visits precede all messages of a micro-batch, and its tick follows them: Spark reads all sources. */
    public boolean controlsPrecede() {
        return get("controls_precede").asBoolean();
    }

    /** Returns the directory of staged files; empty if the egress takes the output. */
    public String staging() {
        return get("staging").asText();
    }

    /** Says whether this run is a rehearsal: tasks without messages load the classes that the first message needs. */
    public boolean isRehearsal() {
        return get("is_rehearsal").asBoolean();
    }

    /** Returns the largest number of tasks that share a micro-batch of a journal. */
    public int parts() {
        return get("parts").asInt();
    }

    /** Returns the time that Spark waits for the next message before it looks at other sources. */
    public long waitMs() {
        return get("wait_ms").asLong();
    }

    /** Returns the milliseconds after which open calls end. */
    public long flushMs() {
        return get("flush_ms").asLong();
    }

    /** Returns the bytes of frames after which a bucket's call ends, since it keeps its frames for a repetition. */
    public long flushBytes() {
        return get("flush_bytes").asLong();
    }

    /** Returns the largest number of bytes of the journal in one row. */
    public int rowBytes() {
        return get("row_bytes").asInt();
    }

    /** Returns the bytes of the journal after which a batch ends early. */
    public long batchBytes() {
        return get("batch_bytes").asLong();
    }

    /** Returns the milliseconds after which a batch with input ends. */
    public long batchMs() {
        return get("batch_ms").asLong();
    }

    /** Returns the length of a pause in milliseconds after which a batch ends early, if the batch has had input. */
    public long idleMs() {
        return get("idle_ms").asLong();
    }

    private static List<Integer> numbers(JsonNode list) {
        List<Integer> found = new ArrayList<>();
        list.forEach(number -> found.add(number.asInt()));
        return found;
    }

    private <T> T parsed(String name, com.google.protobuf.Parser<T> parser) {
        try {
            return parser.parseFrom(Base64.getDecoder().decode(get(name).asText()));
        } catch (InvalidProtocolBufferException error) {
            throw new IllegalArgumentException(name + " is damaged", error);
        }
    }
}
