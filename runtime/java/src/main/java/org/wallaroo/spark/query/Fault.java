package org.wallaroo.spark.query;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Named kill points of tests: {@code WALLAROO_FAULT} names the point at which this process ends.
 *
 * <p>The Python SDK's {@code wallaroo.diagnostic.fault} has the same rules.
 */
public final class Fault {
    private static final String POINTS = "," + System.getenv().getOrDefault("WALLAROO_FAULT", "") + ",";
    private static final String DIRECTORY = System.getenv().getOrDefault("WALLAROO_FAULT_DIR", "");
    private static final Map<String, Integer> COUNTS = new ConcurrentHashMap<>();

    private Fault() {}

    /** Ends this process if {@code WALLAROO_FAULT} has {@code point:n}, and the point is reached for the n-th time. */
    public static void reach(String point) {
        if (POINTS.length() > 2) {
            String name = point + ":" + COUNTS.merge(point, 1, Integer::sum);
            if (POINTS.contains("," + name + ",") && isFirst(name)) {
                Runtime.getRuntime().halt(137);
            }
        }
    }

    private static boolean isFirst(String name) {
        try {
            if (!DIRECTORY.isEmpty()) {
                Files.createFile(Path.of(DIRECTORY, name));
            }
            return true;
        } catch (FileAlreadyExistsException error) {
            return false;
        } catch (IOException error) { // a mistake of the test, which would pass without a fault
            throw new UncheckedIOException(error);
        }
    }
}
