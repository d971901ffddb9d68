package org.wallaroo.spark.engine;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.wallaroo.spark.account.Account;
import org.wallaroo.spark.account.MonitorNumbers;
import org.wallaroo.spark.bucket.Changes;
import org.wallaroo.spark.deliver.Barrier;
import org.wallaroo.spark.deliver.BarrierQueue;
import org.wallaroo.spark.deliver.DeliverStream;
import org.wallaroo.spark.deliver.EngineStore;
import org.wallaroo.spark.journal.JournalHead;
import org.wallaroo.spark.journal.JournalOffset;
import org.wallaroo.spark.journal.JournalRows;
import org.wallaroo.spark.message.Arrivals;
import org.wallaroo.spark.message.JournalOrigins;
import org.wallaroo.spark.message.JournalRow.Kind;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.message.LetterFrame;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.ErrorPolicy;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.stage.SourceLevel;
import org.wallaroo.spark.stage.StateLevels;

/**
 * Processes the messages of a query in its own thread, which goes on while Spark ends a batch and begins the next one.
 *
 * <p>Tasks take barriers from the engine (moments at which no call is open), so that the states and the offset that
 * they store belong to one barrier. An engine serves the next task, too, if this task begins where the previous one
 * ended. A failed task ends the engine. The engine of a new query begins before its first task, which comes seconds
 * later.
 */
public final class Engine implements EngineGuard.Served {
    private static final Map<String, EngineGuard> GUARDS = new ConcurrentHashMap<>();
    private static final long END_MS = 10_000;

    private final Settings settings;
    private final JournalOffset start;
    private final Attempt attempt;
    private final BarrierQueue queue;
    private final EngineStore store;
    private final Thread thread;
    private volatile DeliverStream deliveries;
    private volatile boolean isClosed;

    private Engine(Settings settings, JournalOffset start, Attempt attempt) {
        this.settings = settings;
        this.start = start;
        this.attempt = attempt;
        queue = new BarrierQueue(start, attempt.attempt());
        store = new EngineStore(queue, attempt.batch() == 0);
        thread = new Thread(this::run, "wallaroo-engine");
        thread.setDaemon(true);
        thread.start();
    }

    /** Returns the guard through which the tasks of a query call its engine. */
    public static EngineGuard guard(Settings settings) {
        return GUARDS.computeIfAbsent(
                settings.text(), text -> new EngineGuard((start, attempt) -> new Engine(settings, start, attempt)));
    }

    @Override
    public BarrierQueue queue() {
        return queue;
    }

    @Override
    public void stored(List<Changes> changes) {
        store.stored(changes);
    }

    @Override
    public boolean goesOnFrom(JournalOffset place) {
        return !isClosed && deliveries != null && queue.goesOnFrom(place.offset());
    }

    @Override
    public void goOn(long newAttempt) {
        queue.begin(newAttempt);
        MonitorNumbers.of(settings.text()).begin(queue.last().offset());
        if (queue.last().sequence() >= 0) { // a barrier was taken, and is committed by now
            deliveries.commit(queue.last().sequence());
        }
    }

    private void run() {
        try {
            process();
        } catch (Throwable error) { // any error, since a task waits for this thread
            queue.fail(error instanceof RuntimeException failure ? failure : new IllegalStateException(error));
        }
    }

    private void process() throws IOException {
        Account account = Account.of(settings, start);
        MonitorNumbers numbers = MonitorNumbers.of(settings.text());
        account.counters().restore(numbers.begin(start.offset()));
        try (JournalRows rows = new JournalRows(settings, start);
                DeliverStream stream = new DeliverStream(settings, attempt, start.offset(), queue);
                SourceLevel source = SourceLevel.of(
                        settings, 0, attempt, rows, new JournalOrigins(settings.topics()), account);
                StateLevels states = new StateLevels(settings, attempt, store, account)) {
            deliveries = stream;
            states.warm();
            numbers.beginReading();
            ErrorPolicy policy = settings.policy();
            while (source.hasNext()) {
                JournalRow row = states.run(source.next());
                LetterFrame.Letter letter = policy.firstThatStops(row.items());
                if (letter != null) { // no output of the row leaves: later messages may have made it
                    queue.endWith(OperatorFailure.stopped(letter.value()));
                    stream.finish();
                    return;
                }
                Arrivals arrivals = numbers.untimed(row.arrivals());
                numbers.time(row.place().offset(), arrivals, !row.items().isEmpty(), this::readableMs);
                stream.deliver(row.items(), arrivals); // may wait, which is no part of the computing
                account.delivered(row.items());
                if (row.kind() == Kind.FLUSH) {
                    account.check(row.place().messages());
                    numbers.put(row.place().offset(), account.counters().copy());
                }
                stream.mark(row.place());
                if (row.kind() == Kind.FLUSH) {
                    queue.put(new Barrier(row.place(), stream.number(), store.bind()));
                }
            }
            queue.end();
            stream.finish();
        }
    }

    private long readableMs(long offset) {
        return JournalHead.readableMs(settings.text(), offset);
    }

    @Override
    public void close() {
        isClosed = true;
        thread.interrupt();
        try {
            thread.join(END_MS);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
