package org.wallaroo.spark.realtime;

import java.io.IOException;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.wallaroo.spark.realtime.Parcel.Kind;

/**
 * Runs the messages of a query in a thread of its own, which goes on while Spark ends a batch and begins the next one.
 *
 * <p>Tasks take barriers of it: what they store and how far they say they have come is always that of a barrier. An
 * engine serves the tasks that go on where the one before it has ended; when a task fails, the next one has a new engine.
 */
final class Engine {
    private static final Map<String, Engine> OPEN = new ConcurrentHashMap<>();
    private static final Set<String> STOPPED = ConcurrentHashMap.newKeySet(); // settings of queries
    private static final long END_MS = 10_000;

    private final Settings settings;
    private final JournalOffset start;
    private final Attempt attempt;
    private final Handover handover;
    private final AheadStore store;
    private final Thread thread;
    private volatile DeliverStream deliveries;
    private volatile boolean isClosed;

    private Engine(Settings settings, JournalOffset start, Attempt attempt) {
        this.settings = settings;
        this.start = start;
        this.attempt = attempt;
        handover = new Handover(start);
        store = new AheadStore(handover);
        thread = new Thread(this::run, "wallaroo-engine");
        thread.setDaemon(true);
    }

    /**
     * Returns the engine for a task that begins: the one that goes on from there, or a new one.
     *
     * @param settings of the query
     * @param start where the task's batch begins
     * @throws IllegalStateException the query has stopped: nobody would end an engine of it
     */
    static synchronized Engine at(Settings settings, JournalOffset start) {
        if (STOPPED.contains(settings.text())) {
            throw new IllegalStateException("the query has stopped");
        }
        Engine engine = OPEN.get(settings.text());
        if (engine == null || !engine.goesOnFrom(start)) {
            if (engine != null) {
                engine.close();
            }
            engine = new Engine(settings, start, Attempt.current());
            OPEN.put(settings.text(), engine);
            engine.thread.start();
        } else {
            engine.handover.begin();
            Numbers.of(settings.text()).begin(start.offset());
            if (engine.handover.last().sequence() >= 0) { // it has given a barrier, which is committed by now
                engine.deliveries.commit(engine.handover.last().sequence());
            }
        }
        Attempt.onFailure(engine::close);
        return engine;
    }

    /** Returns the engine of a query whose task runs. */
    static Engine of(Settings settings) {
        return OPEN.get(settings.text());
    }

    /** Returns what {@link RealTime#end} does. */
    static long end(String settings) {
        Engine engine = OPEN.get(settings);
        return engine == null ? -1 : engine.handover.endOffset();
    }

    /** Ends that of a query, which has stopped: no task of it gets another one. */
    static synchronized void stop(Settings settings) {
        STOPPED.add(settings.text());
        Engine engine = OPEN.remove(settings.text());
        if (engine != null) {
            engine.close();
        }
    }

    private boolean goesOnFrom(JournalOffset place) {
        return !isClosed && deliveries != null && !handover.hasFailed()
                && handover.last().offset() == place.offset();
    }

    Handover handover() {
        return handover;
    }

    /** Does in a task what the engine wants of Spark's store. */
    void serve(BucketStore sparks) {
        handover.serve(sparks, store::stored);
    }

    private void run() {
        try {
            process();
        } catch (Throwable error) { // whatever it is: a task waits for this thread
            handover.fail(error instanceof RuntimeException failure ? failure : new IllegalStateException(error));
        }
    }

    private void process() throws IOException {
        Account account = Account.of(settings, start);
        Numbers numbers = Numbers.of(settings.text());
        account.tally().restore(numbers.begin(start.offset()));
        try (JournalRows rows = new JournalRows(settings, start);
                DeliverStream stream = new DeliverStream(settings, attempt, start.offset(), handover);
                SourceLevel source = SourceLevel.of(settings, attempt, rows, account);
                StateLevels states = new StateLevels(settings, attempt, store, account)) {
            deliveries = stream;
            states.warm();
            Reached.read(settings);
            ErrorPolicy policy = settings.errorPolicy();
            while (source.hasNext()) {
                Parcel row = states.run(source.next());
                LetterFrame.Letter letter = policy.firstThatStops(row.items());
                if (letter != null) { // none of its parcel leaves, which may be of later messages
                    handover.endWith(OperatorFailure.stopped(letter.value()));
                    stream.finish();
                    return;
                }
                Arrivals arrivals = numbers.untimed(row.arrivals());
                stream.deliver(row.items(), arrivals);
                numbers.time(row.place().offset(), arrivals, !row.items().isEmpty());
                account.delivered(row.items());
                if (row.kind() == Kind.FLUSH) {
                    account.check(row.place().messages());
                    numbers.put(row.place().offset(), account.tally().copy());
                }
                stream.mark(row.place());
                if (row.kind() == Kind.FLUSH) {
                    handover.put(new Barrier(row.place(), stream.number(), store.bind()));
                }
            }
            handover.end();
            stream.finish();
        }
    }

    private void close() {
        isClosed = true;
        thread.interrupt();
        try {
            thread.join(END_MS);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
