package org.wallaroo.spark.query;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The texts of the error catalogue, {@code topology-schema/errors.json}. */
final class Catalogue {
    private static final Pattern PART = Pattern.compile("\\{\\{|\\}\\}|\\{(\\w+)\\}");
    private static final Map<String, JsonNode> ERRORS = read();

    private Catalogue() {}

    /**
     * Returns the text of an error for people: code, message, and remedy.
     *
     * @param values name and value of each placeholder, in turn; a placeholder without a value is not replaced
     */
    static String text(String code, String... values) {
        Map<String, String> given = new HashMap<>();
        for (int at = 0; at + 1 < values.length; at += 2) {
            given.put(values[at], values[at + 1]);
        }
        JsonNode error = ERRORS.get(code);
        if (error == null) {
            return code + " " + given;
        }
        return "%s %s\n  fix: %s".formatted(
                code, filled(error.path("message").asText(), given), filled(error.path("fix").asText(), given));
    }

    private static String filled(String text, Map<String, String> values) {
        return PART.matcher(text).replaceAll(found -> Matcher.quoteReplacement(switch (found.group()) {
            case "{{" -> "{";
            case "}}" -> "}";
            default -> values.getOrDefault(found.group(1), found.group());
        }));
    }

    private static Map<String, JsonNode> read() {
        try (InputStream file = Catalogue.class.getResourceAsStream("errors.json")) {
            Map<String, JsonNode> found = new HashMap<>();
            Json.parse(new String(file.readAllBytes(), StandardCharsets.UTF_8)).get("errors")
                    .forEach(error -> found.put(error.get("code").asText(), error));
            return found;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
