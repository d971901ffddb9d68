import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Arrays;
import java.util.Locale;
import java.util.Properties;
import java.util.function.BiFunction;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** The work of `make bench-peers` on Kafka Streams: exactly once, state in RocksDB with a changelog topic. */
public final class Streams {
    private static final String STORE = "counts";
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Counts records of a key, and forwards each count. */
    private static final class Count extends ContextualFixedKeyProcessor<String, String, String> {
        private final BiFunction<String, Long, String> text;
        private KeyValueStore<String, Long> counts;

        Count(BiFunction<String, Long, String> text) {
            this.text = text;
        }

        @Override
        public void init(FixedKeyProcessorContext<String, String> context) {
            super.init(context);
            counts = context.getStateStore(STORE);
        }

        @Override
        public void process(FixedKeyRecord<String, String> record) {
            Long before = counts.get(record.key());
            long count = before == null ? 1 : before + 1;
            counts.put(record.key(), count);
            context().forward(record.withValue(record.key() + " => " + text.apply(record.value(), count)));
        }
    }

    private static KeyValue<String, String> convert(String text) {
        try {
            JsonNode reading = JSON.readTree(text);
            String user = reading.get("user").asText();
            var converted = JSON.createObjectNode();
            converted.put("id", reading.get("id").asLong());
            converted.put("user", user.toUpperCase(Locale.ROOT));
            converted.put("celsius", (reading.get("fahrenheit").asLong() - 320) * 50 / 9);
            converted.put("place", reading.get("place").asText());
            return KeyValue.pair(user, JSON.writeValueAsString(converted));
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException(error);
        }
    }

    private static KStream<String, String> results(StreamsBuilder builder, String work) {
        KStream<String, String> input = builder.stream(System.getenv("INPUT"));
        if (work.equals("json")) {
            return input.map((key, text) -> convert(text));
        }
        var store = Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(STORE), Serdes.String(), Serdes.Long());
        builder.addStateStore(store.withCachingEnabled());
        if (work.equals("keyed")) {
            return input.processValues(
                    () -> new Count((value, count) -> count + value.substring(value.indexOf(' '))), STORE);
        }
        return input.flatMapValues(line -> Arrays.asList(line.split(" ")))
                .selectKey((key, word) -> word)
                .repartition(Repartitioned.<String, String>as("words").withNumberOfPartitions(4))
                .processValues(() -> new Count((word, count) -> Long.toString(count)), STORE);
    }

    public static void main(String[] arguments) {
        int commitMs = Integer.parseInt(System.getenv("COMMIT_MS"));
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, System.getenv("RUN"));
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, System.getenv("BROKER"));
        settings.put(StreamsConfig.STATE_DIR_CONFIG, System.getenv("STATE"));
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, commitMs);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        settings.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 10000);
        settings.put(StreamsConfig.producerPrefix("batch.size"), 65536);
        if (commitMs < 500) { // else the 100 ms that Kafka Streams itself sets
            settings.put(StreamsConfig.producerPrefix("linger.ms"), 5);
        }
        StreamsBuilder builder = new StreamsBuilder();
        results(builder, System.getenv("WORK")).to(System.getenv("OUTPUT"));
        KafkaStreams streams = new KafkaStreams(builder.build(settings), settings);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_APPLICATION;
        });
        streams.start();
    }
}
