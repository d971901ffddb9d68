package org.wallaroo.spark.journal;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Path;
import java.util.List;

/**
 * A journal as micro-batches use it: the driver divides new frames into ranges, and tasks read these ranges. The
 * journal is in a directory of this machine, or at a remote gateway.
 */
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

    /** Says whether the journal is at a remote gateway, which sends it. */
    boolean isSent();

    /** Returns the present end of the journal: the position up to which it may be read. */
    JournalOffset end();

    /**
     * Returns the end of a micro-batch that begins at an offset: the last frame boundary within {@code maxBytes}. If
     * the first frame alone is longer, returns the boundary after it. If no frame follows the offset, returns the end
     * of the journal.
     *
     * @param waitMs how long to wait if no frame follows; ignored if a gateway sends the journal
     */
    JournalOffset limit(JournalOffset from, long maxBytes, long waitMs) throws InterruptedException;

    /** Divides a range into at most {@code parts} ranges of about the same size, for tasks. Returns the end of each. */
    List<Long> split(JournalOffset from, JournalOffset to, int parts);

    /**
     * Returns the frames of a range, which a task reads.
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
