package org.wallaroo.spark.realtime;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.wallaroo.spark.realtime.Parcel.Kind;

/**
 * Runs the messages of a query in a thread of its own, which goes on while Spark ends a batch and begins the next one.
 *
 * <p>Tasks take barriers of it: what they store and how far they say they have come is always that of a barrier. An
 * engine serves the tasks that go on where the one before it has ended; when a task fails, the next one has a new engine.
 */
final class Engine implements Gate.Served {
    private static final Map<String, Gate> GATES = new ConcurrentHashMap<>();
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
        handover = new Handover(start, attempt.attempt());
        store = new AheadStore(handover);
        thread = new Thread(this::run, "wallaroo-engine");
        thread.setDaemon(true);
        thread.start();
    }

    /** Returns the gate to the engine of a query. */
    static Gate gate(Settings settings) {
        return GATES.computeIfAbsent(
                settings.text(), text -> new Gate((start, attempt) -> new Engine(settings, start, attempt)));
    }

    @Override
    public Handover handover() {
        return handover;
    }

    @Override
    public void stored(List<Changes> changes) {
        store.stored(changes);
    }

    @Override
    public boolean goesOnFrom(JournalOffset place) {
        return !isClosed && deliveries != null && handover.goesOnFrom(place.offset());
    }

    @Override
    public void goOn(long newAttempt) {
        handover.begin(newAttempt);
        Numbers.of(settings.text()).begin(handover.last().offset());
        if (handover.last().sequence() >= 0) { // it has given a barrier, which is committed by now
            deliveries.commit(handover.last().sequence());
        }
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
