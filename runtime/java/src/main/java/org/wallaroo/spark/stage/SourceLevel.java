package org.wallaroo.spark.stage;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.wallaroo.spark.account.CallCounts;
import org.wallaroo.spark.message.Arrivals;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalRow.Kind;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.message.Origins;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.worker.WorkerChannel;
import wallaroo.worker.v1.WorkerOuterClass.Output;

/**
 * Level 0: sends the frames of the journal to the worker of the sources, and gives outputs in the order of the journal.
 *
 * <p>What that sends to other workers of the level goes there when its answer has come. Some rows are under way at
 * once, until the journal has nothing more.
 */
public final class SourceLevel implements Iterator<JournalRow>, AutoCloseable {
    private static final int WINDOW = 3;

    private final Iterator<JournalRow> rows;
    private final DataCalls calls;
    private final Level rest;
    private final Origins origins;
    private final Set<Integer> sources;
    private final Set<Integer> timedTopics; // ports
    private final Set<Integer> controls; // ports of ticks and visits that some stage takes
    private final Deque<JournalRow> underWay = new ArrayDeque<>(); // with frames, whose answers are awaited; or FLUSH
    private boolean isIdle;

    SourceLevel(
            Iterator<JournalRow> rows, DataCalls calls, Level rest, Origins origins, Set<Integer> sources,
            Set<Integer> timedTopics, Set<Integer> controls) {
        this.rows = rows;
        this.calls = calls;
        this.rest = rest;
        this.origins = origins;
        this.sources = sources;
        this.timedTopics = timedTopics;
        this.controls = controls;
    }

    public static SourceLevel of(Settings settings, Attempt attempt, Iterator<JournalRow> rows, CallCounts account) {
        return of(settings, 0, attempt, rows, settings.origins(), account);
    }

    /**
     * Returns one whose rows come in at one of its stages.
     *
     * @param reader number of the stage among those of the level; those before it get nothing
     */
    public static SourceLevel of(
            Settings settings, int reader, Attempt attempt, Iterator<JournalRow> rows, Origins origins,
            CallCounts account) {
        List<Settings> stages = settings.stages(0);
        Settings first = stages.get(reader);
        DataCalls calls = new DataCalls(
                WorkerChannel.of(first), attempt.opening(first.opening()), first.deadlineMs(), account);
        List<LevelStage> others = new ArrayList<>();
        stages.subList(reader + 1, stages.size())
                .forEach(stage -> others.add(new ReceivingStage(stage, attempt, account)));
        calls.open(); // not when the first message waits for it
        return new SourceLevel(
                rows, calls, new Level(others), origins, Set.copyOf(first.entries()), settings.timedTopics(),
                settings.controls());
    }

    @Override
    public boolean hasNext() {
        take();
        return !underWay.isEmpty();
    }

    @Override
    public JournalRow next() {
        JournalRow row = underWay.removeFirst();
        return row.kind() == Kind.FRAMES ? outputsOf(row) : row;
    }

    /** Takes rows while there are some at hand, and room in the window. */
    private void take() {
        while (underWay.size() < WINDOW && (underWay.isEmpty() || !isIdle) && rows.hasNext()) {
            JournalRow row = rows.next();
            if (row.kind() == Kind.IDLE) {
                isIdle = true;
                continue;
            }
            isIdle &= row.kind() != Kind.FRAMES; // after a FLUSH there is as little to come as before it
            JournalRow taken = dividedOf(row);
            underWay.add(taken);
            taken.items().stream().filter(item -> !Frames.isControl(item.port())).forEach(item -> calls.send(item.frame()));
        }
    }

    /** Returns a row with one item of data, where there is some, and one for each tick and visit. */
    private JournalRow dividedOf(JournalRow row) {
        List<JournalRow.Item> items = new ArrayList<>();
        Arrivals arrivals = Arrivals.NONE;
        for (JournalRow.Item item : row.items()) {
            arrivals = Arrivals.now(item.frame(), row.place().offset(), sources, timedTopics); // such a row has one item
            List<byte[]> data = Frames.ofPorts(item.frame(), sources);
            if (!data.isEmpty()) {
                items.add(new JournalRow.Item(item.port(), item.bucket(), item.origin(), Frames.joined(data)));
            }
            Frames.ofPorts(item.frame(), controls).forEach(frame -> items.add(new JournalRow.Item(
                    Frames.port(frame, 0), item.bucket(), item.origin(), Frames.control(frame))));
        }
        return new JournalRow(row.kind(), row.place(), items, arrivals);
    }

    private JournalRow outputsOf(JournalRow row) {
        List<JournalRow.Item> items = new ArrayList<>();
        byte[] data = {};
        for (JournalRow.Item item : row.items()) {
            if (Frames.isControl(item.port())) {
                items.add(item);
                continue;
            }
            data = item.frame(); // a row has one of these at most
            for (Output output : calls.receive()) {
                byte[] frame = output.getFrame().toByteArray();
                items.add(new JournalRow.Item(output.getPort(), output.getBucket(), item.origin(), frame));
            }
        }
        return new JournalRow(Kind.FRAMES, row.place(), origins.put(rest.run(items), data), row.arrivals());
    }

    /** Ends the streams. */
    @Override
    public void close() {
        Closing.all(List.<Runnable>of(calls::close, rest::close), Runnable::run);
    }
}
