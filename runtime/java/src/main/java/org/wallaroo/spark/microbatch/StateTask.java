package org.wallaroo.spark.microbatch;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessorWithInitialState;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.wallaroo.spark.bucket.SparkBucketStore;
import org.wallaroo.spark.query.AppliedSettings;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.rpc.Credentials;
import org.wallaroo.spark.stage.CallScope;
import org.wallaroo.spark.stage.Level;
import org.wallaroo.spark.state.FinalStates;
import org.wallaroo.spark.state.FirstLogs;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's operator with state, which runs a level after a shuffle: all buckets of a partition, whose states are in
 * Spark's store.
 *
 * <p>If the application is applied, a query may begin with states, and a batch may return the states at its end.
 */
final class StateTask extends StatefulProcessorWithInitialState<Integer, byte[], byte[], byte[]> {
    private static final long serialVersionUID = 1L;

    private final Settings settings;
    private final HashMap<String, String[]> credentials = Credentials.all();
    private final int number;
    private transient SparkBucketStore store;
    private transient FirstLogs first;

    StateTask(Settings settings, int number) {
        this.settings = settings;
        this.number = number;
    }

    @Override
    public void init(OutputMode mode, TimeMode time) {
        store = new SparkBucketStore(getHandle());
    }

    @Override
    public void handleInitialState(Integer key, byte[] state, TimerValues timers) {
        first = first == null ? new FirstLogs(store, this::twice) : first;
        first.take(state);
    }

    @Override
    public Iterator<byte[]> handleInputRows(
            Integer key, Iterator<byte[]> rows, TimerValues timers) {
        return CollectionConverters.asScala(PlainErrors.of(settings, () -> made(key, CollectionConverters.asJava(rows))));
    }

    private java.util.Iterator<byte[]> made(Integer key, java.util.Iterator<byte[]> input) {
        Credentials.putAll(credentials);
        Attempt attempt = Attempt.current();
        if (settings.applied() != null && settings.applied().isStream()) {
            new ProgramCheck(settings, number).check(store);
        }
        TaskAccount account = new TaskAccount(attempt, number);
        LevelOutput output = new LevelOutput(settings, number, attempt, account, false);
        output.abortOnFailure();
        // The key selects the buckets, not the task: in a user's own query, Spark may give a task several partitions.
        CallScope scope = new CallScope(settings.targets().indexOf(key), settings.targets().size(), true);
        Level level = Level.of(settings.levels().get(number), attempt, store, account, scope);
        TaskContext.get().addTaskCompletionListener(ended -> {
            level.close();
        });
        if (first != null) {
            first.checkComplete();
        }
        if (settings.applied() == null) {
            return new LevelRows(settings, number, input, level::flushSteps, output, account);
        }
        WindowTime time = new WindowTime(settings);
        EventOrder order = new EventOrder(settings, number);
        LevelRows made = new LevelRows(settings, number, input,
                items -> order.run(time.withLevelTicks(items, store, number), level::flushSteps), output, account);
        AppliedSettings applied = settings.applied();
        return !applied.givesStates() ? made : new EndRows(made, settings.levels().get(number), scope,
                bucket -> new FinalStates(store, bucket, applied.states()), output);
    }

    private OperatorFailure twice(Integer port, byte[] key) {
        return OperatorFailure.of("R716", "what", "the parameter `states`", "reason",
                "state \"%s\" has several rows of the key \"%s\"".formatted(
                        settings.applied().states().get(port), new String(key, StandardCharsets.UTF_8)),
                "fix", "keep one of them, e.g. with .dropDuplicates([\"name\", \"key\"])").forPeople();
    }
}
