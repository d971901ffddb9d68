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
     * Returns the last frame boundary within {@code maxBytes} after an offset, or the next boundary if one frame alone
     * is longer. If nothing follows the offset, the end is returned.
     *
     * @param waitMs how long to wait if nothing follows; a gateway's journal does not wait
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
