package org.wallaroo.spark.journal;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Path;
import java.util.List;

/** A journal of which micro-batches take one part after the other. */
public interface JournalPlace extends AutoCloseable {
    /**
     * Returns the journal of a place.
     *
     * @param place as the driver has written it: {@code directory}, or {@code gateway} with {@code epoch}
     */
    static JournalPlace of(JsonNode place) {
        return place.path("directory").asText().isEmpty()
                ? new JournalService(place.path("gateway").asText(), place.path("epoch").asLong())
                : new JournalDirectory(Path.of(place.path("directory").asText()));
    }

    /** Says whether a gateway sends it. */
    boolean isSent();

    /** Returns the position up to which it may be read now. */
    JournalOffset end();

    /**
     * Returns the last frame boundary at most so many bytes after an offset, but at least one frame further; where
     * nothing follows, the end.
     *
     * @param waitMs how long to wait where nothing follows
     */
    JournalOffset limit(JournalOffset from, long maxBytes, long waitMs) throws InterruptedException;

    /** Cuts a part at frame boundaries into pieces of about the same size; returns where each ends. */
    List<Long> split(JournalOffset from, JournalOffset to, int parts);

    /**
     * Returns the frames of a part.
     *
     * @param start frame boundary
     * @param end frame boundary
     * @param rowBytes how many bytes of frames one row has at most, unless one frame alone has more
     */
    JournalRange range(JournalOffset start, long end, int rowBytes);

    /** Ends the waits for writes. */
    @Override
    default void close() {
        // Nothing does.
    }
}
