package org.wallaroo.spark.microbatch;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import org.wallaroo.spark.message.LetterFrame;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.RecordSource;
import wallaroo.worker.v1.WorkerOuterClass.DeadLetter;
import wallaroo.worker.v1.WorkerOuterClass.Origin;

/** Makes the dead letter of a row that Spark has read, and that is larger than the limit of its source. */
final class LargeRow {
    private static final int PREVIEW_BYTES = 80;
    private static final JsonFactory JSON = JsonFactory.builder()
            .streamReadConstraints(StreamReadConstraints.builder().maxStringLength(Integer.MAX_VALUE).build()).build();

    private LargeRow() {}

    /**
     * Returns the dead letter. It contains only the beginning of the row, since users find the whole row at its source.
     *
     * @param bytes size of the message with its key and headers
     * @param origin the record of Kafka; null if the source is no topic
     */
    static LetterFrame.Letter letter(
            RecordSource source, long sequence, long timeMs, long bytes, byte[] value, Origin origin) {
        String error = String.format(Locale.ROOT, "a %s of %,d bytes; at most %,d are taken",
                source.rows() ? "row" : source.topic() ? "record" : "message", bytes, source.limit());
        DeadLetter.Builder letter = DeadLetter.newBuilder()
                .setCode(OperatorFailure.TOO_LARGE).setPath(source.path()).setStep(source.name()).setSequence(sequence)
                .setPort(source.port()).setTimestampMs(timeMs).setError(error + (source.rows() ? longest(value) : ""))
                .setPreview(preview(value));
        if (origin != null) {
            letter.setOrigin(origin);
        }
        return new LetterFrame.Letter(sequence, source.path(), letter.build().toByteArray());
    }

    private static String preview(byte[] value) {
        int end = Math.min(value.length, PREVIEW_BYTES);
        while (end < value.length && end > PREVIEW_BYTES - 3 && (value[end] & 0xc0) == 0x80) {
            end--; // do not cut within a character of up to four bytes
        }
        return new String(value, 0, end, StandardCharsets.UTF_8);
    }

    /** Returns a text that names the longest member of a JSON object. */
    private static String longest(byte[] object) {
        String name = "";
        long most = 0;
        try (JsonParser parser = JSON.createParser(object)) {
            parser.nextToken();
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                String member = parser.currentName();
                long begin = parser.currentLocation().getByteOffset();
                parser.nextToken();
                parser.skipChildren();
                parser.finishToken();
                long bytes = parser.currentLocation().getByteOffset() - begin;
                name = bytes > most ? member : name;
                most = Math.max(most, bytes);
            }
        } catch (IOException error) {
            return "";
        }
        return String.format(Locale.ROOT, "; its column \"%s\" has %,d", name, most);
    }
}
