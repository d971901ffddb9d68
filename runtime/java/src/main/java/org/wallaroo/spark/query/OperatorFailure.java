package org.wallaroo.spark.query;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HexFormat;
import java.util.StringJoiner;
import wallaroo.worker.v1.WorkerOuterClass.DeadLetter;
import wallaroo.worker.v1.WorkerOuterClass.Failure;

/**
 * An error of the error catalogue, in a form that survives in Spark's report of a failed query.
 *
 * <p>Its text is for readers of Spark's report. The driver of a run takes code and values ({@code
 * spark/failure/translate.py}), and reports more.
 */
public final class OperatorFailure extends RuntimeException {
    private static final long serialVersionUID = 1L;
    /** The code of a message that is larger than its source takes. */
    public static final String TOO_LARGE = "R606";

    private static final String UNWRITABLE = "C504";
    private static final int KEY_CHARACTERS = 80;
    private static final String MARK = "wallaroo-operator:";

    private final String text;

    private OperatorFailure(String text) {
        super(text);
        this.text = text;
    }

    private OperatorFailure(String text, String json) {
        super(text + "\n" + MARK + Base64.getEncoder().encodeToString(json.getBytes(StandardCharsets.UTF_8)) + ":");
        this.text = text;
    }

    /** Returns the same error without the fields for Wallaroo's driver. A user's own query has no such driver. */
    public OperatorFailure forPeople() {
        OperatorFailure same = new OperatorFailure(text);
        same.setStackTrace(getStackTrace());
        return same;
    }

    /**
     * Returns an error of the catalogue.
     *
     * @param code of {@code errors.json}
     * @param values name and value of each placeholder of its text, in turn
     */
    public static OperatorFailure of(String code, Object... values) {
        String[] texts = new String[values.length];
        for (int i = 0; i < values.length; i++) {
            texts[i] = String.valueOf(values[i]);
        }
        String fields = Json.object((Object[]) texts);
        return new OperatorFailure(Catalogue.text(code, texts), "{\"code\": \"" + code + "\", \"values\": " + fields + "}");
    }

    /**
     * Returns the error for findings that a supervisor has reported.
     *
     * @param findings a JSON array of diagnostics
     */
    public static OperatorFailure found(JsonNode findings) {
        StringJoiner texts = new StringJoiner("\n");
        findings.forEach(each -> texts.add(shown(each)));
        return new OperatorFailure(texts.toString(), "{\"found\": " + findings + "}");
    }

    /** Returns a finding as Python shows a {@code Diagnostic}, but without a place in a topology. */
    private static String shown(JsonNode finding) {
        StringJoiner lines = new StringJoiner("\n  ");
        lines.add(finding.path("code").asText() + " " + finding.path("message").asText());
        String place = (finding.path("file").asText() + ":" + finding.path("line").asText()).replaceFirst(":0?$", "");
        if (!place.isEmpty()) {
            lines.add("at " + place);
        }
        finding.path("traceback").asText().lines().forEach(line -> lines.add("| " + line));
        return lines.add("fix: " + finding.path("fix").asText()).toString();
    }

    /**
     * Returns the error of a dead letter that ends the query of a run. The driver makes its text from the letter.
     *
     * @param letter a serialized {@code DeadLetter}
     */
    public static OperatorFailure stopped(byte[] letter) {
        return new OperatorFailure("R611", Json.object("letter", Base64.getEncoder().encodeToString(letter)));
    }

    /**
     * Returns the error of a dead letter that ends a user's own query.
     *
     * @param letter the dead letter
     * @param wayOut advice to the user: how such a letter no longer ends the query
     */
    public static OperatorFailure ended(DeadLetter letter, String wayOut) {
        String kind = kind(letter.getPath());
        String correct = letter.getCode().equals(TOO_LARGE) ? "drop or shorten the column before `apply`"
                : kind.equals("source") ? "correct such rows before `apply`, or the program" : "correct the user code";
        // An unwritable value is a fault of the program, not of one message. Dead letters would hide this fault.
        String other = letter.getCode().equals(UNWRITABLE) ? "" : ", or " + wayOut;
        String text = Catalogue.text("R611", "reason", "%s \"%s\": %s %s%s".formatted(
                kind, letter.getStep(), letter.getCode(), letter.getError(), message(letter)), "fix", correct + other);
        return new OperatorFailure((text + "\n" + letter.getTraceback()).stripTrailing());
    }

    private static String kind(String path) {
        return path.contains("/sources/") ? "source" : path.contains("/sinks/") ? "sink" : "step";
    }

    private static String message(DeadLetter letter) {
        String key = letter.getKey().isValidUtf8() ? "'" + letter.getKey().toStringUtf8() + "'"
                : "0x" + HexFormat.of().formatHex(letter.getKey().toByteArray());
        String shown = key.length() > KEY_CHARACTERS ? key.substring(0, KEY_CHARACTERS - 1) + "…" : key;
        StringJoiner words = new StringJoiner("; ", " (", ")").setEmptyValue("");
        if (letter.getHasKey()) {
            words.add("key " + shown);
        }
        if (!letter.getPreview().isEmpty()) {
            words.add(letter.getPreview().replaceAll("\\p{Cntrl}", " "));
        }
        return words.toString();
    }

    /**
     * Returns the failure that a worker has reported.
     *
     * @param worker name of the worker
     * @param failure of the worker
     */
    public static OperatorFailure reported(String worker, Failure failure) {
        String fields = Json.object("code", failure.getCode(), "message", failure.getMessage(),
                "fix", failure.getFix(), "traceback", failure.getTraceback(), "pointer", failure.getPointer(),
                "file", failure.getFile(), "line", failure.getLine());
        return new OperatorFailure(shown(Json.parse(fields)),
                "{\"worker\": " + Json.write(worker) + ", \"reported\": " + fields + "}");
    }
}
