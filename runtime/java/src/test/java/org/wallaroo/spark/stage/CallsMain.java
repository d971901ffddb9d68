package org.wallaroo.spark.stage;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.StreamHandler;
import org.wallaroo.spark.account.Account;
import org.wallaroo.spark.bucket.BucketStore;
import org.wallaroo.spark.bucket.BucketVersion;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.StageSettings;
import org.wallaroo.spark.worker.WorkerChannel;
import org.wallaroo.spark.worker.WorkerConnection;
import wallaroo.worker.v1.WorkerOuterClass.Opening;
import wallaroo.worker.v1.WorkerOuterClass.Output;

/** Makes the worker calls in the lines of its input, which {@code runtime/tests/java_client.py} writes. */
final class CallsMain {
    private static final long MANY_BYTES = 1L << 40; // of changes, after which a log is compacted
    private static final Map<String, Session> SESSIONS = new HashMap<>();

    private static final List<String> LOG = new CopyOnWriteArrayList<>(); // warnings of the operators
    private static final Logger LOGGER = Logger.getLogger("org.wallaroo.spark");

    private CallsMain() {}

    public static void main(String[] args) throws IOException {
        LOGGER.addHandler(new StreamHandler() {
            @Override
            public void publish(LogRecord line) {
                LOG.add(line.getMessage());
            }
        });
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            System.out.println(Json.write(answer(Json.parse(line))));
        }
    }

    private static Map<String, Object> answer(JsonNode request) {
        String name = request.path("session").asText();
        try {
            return switch (request.get("op").asText()) {
                case "open" -> {
                    SESSIONS.put(name, new Session(request));
                    yield Map.of();
                }
                case "send" -> SESSIONS.get(name).send(bytes(request.get("frames")));
                case "receive" -> SESSIONS.get(name).receive();
                case "bucket" -> SESSIONS.get(name).bucket(request);
                case "close" -> SESSIONS.remove(name).close();
                case "log" -> Map.of("lines", List.copyOf(LOG));
                case "endings" -> Map.of("endings", WorkerConnection.takeEndings());
                default -> throw new IllegalArgumentException("unknown: " + request.get("op"));
            };
        } catch (OperatorFailure failure) {
            return Map.of("failure", failure.getMessage());
        } catch (RuntimeException error) {
            error.printStackTrace();
            return Map.of("error", error.toString());
        }
    }

    /** The streams of a task to a worker, and a store with the log of one bucket. */
    private static final class Session implements BucketStore {
        private final Account account;
        private final String stage;
        private final DataCalls data;
        private final BucketCalls buckets;
        private BucketVersion version = BucketVersion.EMPTY; // and all that follows: of the bucket that is called
        private List<byte[]> log = List.of();
        private Map<String, Object> stored = Map.of();
        private int reads;

        private Session(JsonNode request) {
            StageSettings settings = Json.read(request.get("settings"), StageSettings.class);
            WorkerChannel channel = new WorkerChannel(settings);
            Opening opening = settings.opening();
            stage = opening.getStage().getId();
            account = new Account(List.of(Map.of(stage, List.of())), 0);
            boolean hasState = settings.hasState();
            data = hasState ? null : new DataCalls(channel, opening, settings.deadlineMs(), account);
            buckets = hasState ? new BucketCalls(channel, opening, this, settings, account, true) : null;
        }

        private Map<String, Object> send(byte[] frames) {
            data.send(frames);
            return Map.of();
        }

        private Map<String, Object> receive() {
            List<Object> outputs = new ArrayList<>();
            for (Output output : data.receive()) {
                outputs.add(List.of(output.getPort(), output.getBucket(), text(output.getFrame().toByteArray())));
            }
            return Map.of("outputs", outputs);
        }

        private Map<String, Object> bucket(JsonNode request) {
            int bucket = request.get("bucket").asInt();
            log = new ArrayList<>();
            request.get("log").forEach(entry -> log.add(bytes(entry)));
            version = new BucketVersion(request.get("counter").asLong(), request.get("nonce").asLong(), 0, log.size(), 0,
                    request.get("wants_snapshot").asBoolean() ? MANY_BYTES : 0);
            reads = 0;
            List<JournalRow.Item> items = new ArrayList<>();
            request.get("frames").forEach(frame -> items.add(new JournalRow.Item(0, bucket, -1, bytes(frame))));
            List<Object> outputs = new ArrayList<>();
            buckets.run(items).forEachRemaining(step -> step.forEach(
                    item -> outputs.add(List.of(item.port(), item.bucket(), text(item.frame())))));
            Map<String, Object> result = new LinkedHashMap<>(stored);
            result.put("outputs", outputs);
            result.put("reads", reads);
            result.put("keys", account.counters().stores().get(stage).get(bucket).get(0));
            return result;
        }

        private Map<String, Object> close() {
            if (data != null) {
                data.close();
            } else {
                buckets.close();
            }
            return Map.of();
        }

        @Override
        public BucketVersion version(int bucket) {
            return version;
        }

        @Override
        public List<byte[]> log(int bucket, BucketVersion before) {
            reads++;
            return log;
        }

        @Override
        public void store(int bucket, BucketVersion before, BucketVersion after, List<byte[]> changes) {
            stored = Map.of("counter", after.counter(), "nonce", after.nonce(), "is_whole", after.first() == before.last(),
                    "changes", changes.stream().map(CallsMain::text).toList());
        }
    }

    private static String text(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }

    private static byte[] bytes(JsonNode text) {
        return Base64.getDecoder().decode(text.asText());
    }
}
