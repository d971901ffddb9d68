package org.wallaroo.spark.microbatch;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.SparkSession;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.StageSettings;
import org.wallaroo.spark.worker.WorkerConnection;
import org.wallaroo.spark.worker.WorkerHome;

/** Starts and stops workers on the executors of a cluster, in one task for each core. */
public final class WorkerTasks {
    private static final String BETWEEN = "\t";

    private static WeakReference<SparkContext> ending = new WeakReference<>(null);

    private WorkerTasks() {}

    /** Ends this process's workers when Spark stops, since the process may outlive Spark. */
    public static synchronized void endWith(SparkSession session) {
        SparkContext context = session.sparkContext();
        if (ending.get() == context) {
            return;
        }
        ending = new WeakReference<>(context);
        context.addSparkListener(new SparkListener() {
            @Override
            public void onApplicationEnd(SparkListenerApplicationEnd end) {
                WorkerConnection.stopAll();
            }
        });
    }

    /**
     * Starts workers.
     *
     * @param workers settings of each worker, as JSON
     * @param tasks number of tasks that may run at the same time
     * @return gRPC target of each worker's first endpoint on one executor, by name of the worker
     */
    public static Map<String, String> start(SparkSession session, String workers, int tasks) {
        MapPartitionsFunction<Long, String> start = rows -> {
            List<String> found = new ArrayList<>();
            for (JsonNode worker : Json.parse(workers)) {
                StageSettings settings = Json.read(worker, StageSettings.class);
                found.add(settings.worker() + BETWEEN + WorkerHome.of(settings).target());
            }
            return found.iterator();
        };
        Map<String, String> targets = new TreeMap<>();
        for (String row : on(session, tasks, start)) {
            String[] parts = row.split(BETWEEN);
            targets.put(parts[0], parts[1]);
        }
        return targets;
    }

    /** Stops the workers that tasks have started. */
    public static void stop(SparkSession session, int tasks) {
        on(session, tasks, rows -> {
            WorkerConnection.stopAll();
            return List.<String>of().iterator();
        });
    }

    private static List<String> on(SparkSession session, int tasks, MapPartitionsFunction<Long, String> function) {
        return session.range(0, tasks, 1, tasks).mapPartitions(function, Encoders.STRING()).collectAsList();
    }
}
