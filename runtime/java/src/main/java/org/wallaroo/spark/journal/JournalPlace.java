package org.wallaroo.spark.journal;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Path;
import java.util.List;

/** A journal from which micro-batches take one part after the other. */
public interface JournalPlace extends AutoCloseable {
    /**
     * Returns the journal that the driver's settings describe.
     *
     * @param place an object with {@code directory}, or with {@code gateway} and {@code epoch}
     */
    static JournalPlace of(JsonNode place) {
        return place.path("directory").asText().isEmpty()
                ? new JournalService(place.path("gateway").asText(), place.path("epoch").asLong())
                : new JournalDirectory(Path.of(place.path("directory").asText()));
    }

    /** Says whether a gateway sends the journal. */
    boolean isSent();

    /** Returns the position up to which the journal may be read now. */
    JournalOffset end();

    /**
     * Returns the last frame boundary within {@code maxBytes} after an offset. If the first frame alone is longer,
     * returns the boundary after it. If no frame follows the offset, returns the end of the journal.
     *
     * @param waitMs how long to wait if no frame follows; ignored if a gateway sends the journal
     */
    JournalOffset limit(JournalOffset from, long maxBytes, long waitMs) throws InterruptedException;

    /** Cuts a part at frame boundaries into pieces of about the same size, and returns the end of each piece. */
    List<Long> split(JournalOffset from, JournalOffset to, int parts);

    /**
     * Returns the frames of a part.
     *
     * @param start frame boundary
     * @param end frame boundary
     * @param rowBytes largest size of the frames in one row; a row with a single frame may be larger
     */
    JournalRange range(JournalOffset start, long end, int rowBytes);

    /** Stops watching for writes. */
    @Override
    default void close() {
        // Only a journal of this machine is watched.
    }
}
