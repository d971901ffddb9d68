package org.wallaroo.spark.query;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.Map;

/** Recognizes a disk that takes no data, e.g. because it is full; {@code durable/file.py} has the same findings. */
public final class DiskFailure {
    private static final String FREE = "free some space";
    private static final Map<String, String> REMEDIES = Map.of(
            "No space left on device", FREE,
            "Disk quota exceeded", FREE,
            "File too large", FREE,
            "Read-only file system", "mount it for writing (`dmesg` may say why it is not)",
            "Stale file handle", "mount it again");

    private DiskFailure() {}

    /**
     * Returns the error with which the query fails when a write has failed.
     *
     * @param place path on the disk that a user knows
     */
    public static RuntimeException of(Path place, IOException error) {
        String text = String.valueOf(error.getMessage());
        return REMEDIES.entrySet().stream()
                .filter(each -> text.contains(each.getKey()))
                .<RuntimeException>map(each -> OperatorFailure.of(
                        "R626", "what", place, "reason", each.getKey(), "fix", each.getValue()))
                .findFirst()
                .orElseGet(() -> new UncheckedIOException(error));
    }
}
