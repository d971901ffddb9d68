package org.wallaroo.spark.query;

import java.io.IOException;
import java.net.URL;
import java.util.Collections;
import java.util.Enumeration;
import org.apache.spark.sql.execution.streaming.state.RocksDBLoader;

/**
 * Makes the start of a session shorter.
 *
 * <p>Spark registers the SQL functions of its machine learning in each new session by Scala's reflection, which takes
 * 0.7 s. An application cannot call them, so they are hidden. RocksDB's library is loaded in a thread. Classes of Spark
 * are not, because two threads that initialize classes which need each other can wait for ever.
 */
public final class SessionStart {
    private static final String SERVICE = "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider";
    private static final String HIDDEN_JAR = "/spark-mllib_";

    private SessionStart() {}

    /** Begins the start of a session by the calling thread. */
    public static void begin() {
        Thread thread = Thread.currentThread();
        thread.setContextClassLoader(new Hiding(thread.getContextClassLoader()));
        Thread loading = new Thread(RocksDBLoader::loadLibrary, "wallaroo-load");
        loading.setDaemon(true);
        loading.start();
    }

    /** Ends the start, in the same thread. */
    public static void end() {
        Thread thread = Thread.currentThread();
        thread.setContextClassLoader(thread.getContextClassLoader().getParent());
    }

    private static final class Hiding extends ClassLoader {
        Hiding(ClassLoader parent) {
            super(parent);
        }

        @Override
        public Enumeration<URL> getResources(String name) throws IOException {
            Enumeration<URL> found = super.getResources(name);
            return !name.equals(SERVICE) ? found : Collections.enumeration(Collections.list(found).stream()
                    .filter(url -> !url.getPath().contains(HIDDEN_JAR))
                    .toList());
        }
    }
}
