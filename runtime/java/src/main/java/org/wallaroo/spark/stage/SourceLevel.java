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
import org.wallaroo.spark.query.StageSettings;
import org.wallaroo.spark.worker.WorkerChannel;
import wallaroo.worker.v1.WorkerOuterClass.Output;

/**
 * Level 0: sends frames of the journal to the worker of the sources, and returns outputs in the order of the journal.
 *
 * <p>Output for stages of other workers in this level goes to them next. Some rows are in flight at the same time. When
 * the journal has no more frames, the level takes no row until the rows in flight are answered. A dead letter that
 * comes in place of its message, e.g. because the message is too large for a frame, passes through.
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
    private final Deque<JournalRow> underWay = new ArrayDeque<>(); // frames whose answers are awaited, and FLUSH
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

    /**
     * Returns level 0 for rows of sources that one worker decodes: the rows enter at the stage of this worker.
     *
     * @param reader number of the stage that rows enter; earlier stages of the level get no frames
     */
    public static SourceLevel of(
            Settings settings, int reader, Attempt attempt, Iterator<JournalRow> rows, Origins origins,
            CallCounts account) {
        List<StageSettings> stages = settings.levels().get(0);
        StageSettings first = stages.get(reader);
        DataCalls calls = new DataCalls(
                new WorkerChannel(first), attempt.opening(first.opening()), first.deadlineMs(), account);
        List<LevelStage> others = new ArrayList<>();
        stages.subList(reader + 1, stages.size())
                .forEach(stage -> others.add(new ReceivingStage(stage, attempt, account)));
        calls.open(); // early, so that the first message does not wait for it
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

    /** Takes rows and sends their frames, while rows are available and fewer than {@link #WINDOW} await answers. */
    private void take() {
        while (underWay.size() < WINDOW && (underWay.isEmpty() || !isIdle) && rows.hasNext()) {
            JournalRow row = rows.next();
            if (row.kind() == Kind.IDLE) {
                isIdle = true;
                continue;
            }
            isIdle &= row.kind() != Kind.FRAMES; // a FLUSH does not mean that the journal has more
            JournalRow taken = dividedOf(row);
            underWay.add(taken);
            taken.items().stream().filter(item -> !isPassing(item)).forEach(item -> calls.send(item.frame()));
        }
    }

    private static boolean isPassing(JournalRow.Item item) {
        return Frames.isControl(item.port()) || item.port() == Frames.DEAD_LETTER_PORT;
    }

    /** Splits a row into one item with all data, if any, and one for each tick, visit and frame of dead letters. */
    private JournalRow dividedOf(JournalRow row) {
        List<JournalRow.Item> items = new ArrayList<>();
        Arrivals arrivals = Arrivals.NONE;
        for (JournalRow.Item item : row.items()) {
            arrivals = Arrivals.now(item.frame(), row.place().offset(), sources, timedTopics); // the row has one item
            List<byte[]> data = Frames.ofPorts(item.frame(), sources);
            if (!data.isEmpty()) {
                items.add(new JournalRow.Item(item.port(), item.bucket(), item.origin(), Frames.joined(data)));
            }
            Frames.ofPorts(item.frame(), controls).forEach(frame -> items.add(new JournalRow.Item(
                    Frames.port(frame, 0), item.bucket(), item.origin(), Frames.controlForWorker(frame))));
            Frames.ofPorts(item.frame(), Set.of(Frames.DEAD_LETTER_PORT)).forEach(frame -> items.add(
                    new JournalRow.Item(Frames.DEAD_LETTER_PORT, -1, item.origin(), frame)));
        }
        return new JournalRow(row.kind(), row.place(), items, arrivals);
    }

    private JournalRow outputsOf(JournalRow row) {
        List<JournalRow.Item> items = new ArrayList<>();
        byte[] data = {};
        for (JournalRow.Item item : row.items()) {
            if (item.port() == Frames.DEAD_LETTER_PORT) {
                calls.countLetters(item);
            }
            if (isPassing(item)) {
                items.add(item);
                continue;
            }
            data = item.frame(); // a row has at most one item of data
            for (Output output : calls.receive()) {
                byte[] frame = output.getFrame().toByteArray();
                items.add(new JournalRow.Item(output.getPort(), output.getBucket(), item.origin(), frame));
            }
        }
        return new JournalRow(Kind.FRAMES, row.place(), origins.addTo(rest.run(items), data), row.arrivals());
    }

    /** Ends the streams. */
    @Override
    public void close() {
        Closing.all(List.<Runnable>of(calls::close, rest::close), Runnable::run);
    }
}
