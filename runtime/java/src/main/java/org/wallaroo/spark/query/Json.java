package org.wallaroo.spark.query;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationContext;
import com.fasterxml.jackson.databind.JsonDeserializer;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.module.SimpleModule;
import com.google.protobuf.Parser;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import wallaroo.worker.v1.WorkerOuterClass.InitRequest;
import wallaroo.worker.v1.WorkerOuterClass.Opening;

/** Reads and writes JSON, with the library that Spark brings. */
public final class Json {
    private static final ObjectMapper MAPPER = new ObjectMapper()
            .setPropertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
            .registerModule(new SimpleModule()
                    .addDeserializer(InitRequest.class, message(InitRequest.parser()))
                    .addDeserializer(Opening.class, message(Opening.parser())));

    private Json() {}

    /** Returns a reader of a field that has a message of protobuf in base64. */
    private static <T> JsonDeserializer<T> message(Parser<T> parser) {
        return new JsonDeserializer<>() {
            @Override
            public T deserialize(JsonParser text, DeserializationContext context) throws IOException {
                return parser.parseFrom(text.getBinaryValue());
            }
        };
    }

    public static JsonNode parse(String text) {
        try {
            return MAPPER.readTree(text);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException("no JSON: " + text, error);
        }
    }

    /** Returns a value as a record: its field {@code is_it} becomes the component {@code isIt}. */
    public static <T> T read(JsonNode value, Class<T> type) {
        try {
            return MAPPER.treeToValue(value, type);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException("no " + type.getSimpleName() + ": " + value, error);
        }
    }

    public static String write(Object value) {
        try {
            return MAPPER.writeValueAsString(value);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException("cannot be written as JSON: " + value, error);
        }
    }

    /** Returns a JSON object; {@code pairs} has its names and values in turn. */
    public static String object(Object... pairs) {
        Map<String, Object> fields = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            fields.put(String.valueOf(pairs[i]), pairs[i + 1]);
        }
        return write(fields);
    }
}
