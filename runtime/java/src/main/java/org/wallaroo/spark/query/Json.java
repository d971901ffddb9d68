package org.wallaroo.spark.query;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Map;

/** JSON, with the library that Spark brings. */
public final class Json {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Json() {}

    public static JsonNode parse(String text) {
        try {
            return MAPPER.readTree(text);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException("no JSON: " + text, error);
        }
    }

    /** Returns a value as a record, whose components have the names of its fields. */
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

    public static String object(Object... pairs) {
        Map<String, Object> fields = new java.util.LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            fields.put(String.valueOf(pairs[i]), pairs[i + 1]);
        }
        return write(fields);
    }
}
