package org.wallaroo.spark.journal;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HexFormat;
import java.util.Objects;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.wallaroo.spark.query.Json;

/** A boundary between frames of a journal, as Spark's checkpoint stores it. Both modes store the same text. */
public final class JournalOffset extends Offset implements PartitionOffset {
    private static final long serialVersionUID = 1L;

    private final long journal;
    private final long offset;
    private final long messages;

    /**
     * Makes an offset.
     *
     * @param journal id of the journal
     * @param offset number of frame bytes before the boundary
     * @param messages number of messages before the boundary
     */
    public JournalOffset(long journal, long offset, long messages) {
        this.journal = journal;
        this.offset = offset;
        this.messages = messages;
    }

    /**
     * Reads the text that {@link #json} has returned.
     *
     * @param text JSON
     */
    public static JournalOffset parse(String text) {
        JsonNode value = Json.parse(text);
        return new JournalOffset(Long.parseUnsignedLong(value.path("journal").asText(), 16),
                value.path("offset").asLong(), value.path("sequence").asLong());
    }

    /** Returns the id of the journal. */
    public long journal() {
        return journal;
    }

    /** Returns the number of frame bytes before this boundary. */
    public long offset() {
        return offset;
    }

    /** Returns the number of messages before this boundary. */
    public long messages() {
        return messages;
    }

    /**
     * Returns the id of a journal as hexadecimal digits, since readers of JSON round large numbers.
     *
     * @param id of the journal
     */
    public static String hex(long id) {
        return HexFormat.of().toHexDigits(id);
    }

    @Override
    public String json() {
        // Not String.format, which writes digits of the default locale.
        return "{\"journal\": \"" + hex(journal) + "\", \"offset\": " + offset + ", \"sequence\": " + messages + "}";
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof JournalOffset that && journal == that.journal && offset == that.offset;
    }

    @Override
    public int hashCode() {
        return Objects.hash(journal, offset);
    }
}
