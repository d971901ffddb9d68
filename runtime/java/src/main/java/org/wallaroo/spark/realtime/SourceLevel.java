package org.wallaroo.spark.realtime;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.wallaroo.spark.realtime.Parcel.Kind;
import wallaroo.worker.v1.WorkerOuterClass.Output;

/**
 * Level 0: sends the frames of the journal to the worker of the sources, and gives outputs in the order of the journal.
 *
 * <p>What that sends to other workers of the level goes there when its answer has come. Some rows are under way at once, until the source says that it has nothing more. The end of the input is marked
 * here and not by the source, which Spark does not ask again once the time of a batch is over.
 */
final class SourceLevel implements MapPartitionsFunction<byte[], byte[]> {
    private static final long serialVersionUID = 1L;
    private static final int WINDOW = 3;

    private final Settings settings;

    SourceLevel(Settings settings) {
        this.settings = settings;
    }

    @Override
    public Iterator<byte[]> call(Iterator<byte[]> rows) {
        Attempt attempt = Attempt.current();
        List<Settings> stages = settings.stages(0);
        Settings first = stages.get(0);
        DataCalls calls =
                new DataCalls(WorkerChannel.of(first), attempt.opening(first.opening()), first.deadlineMs());
        List<LevelStage> others = new ArrayList<>();
        stages.subList(1, stages.size()).forEach(stage -> others.add(new ReceivingStage(stage, attempt)));
        Level rest = new Level(others);
        attempt.onEnd(calls::close);
        attempt.onEnd(rest::close);
        calls.open(); // not when the first message waits for it
        return new Outputs(rows, calls, rest, Set.copyOf(first.entries()), settings.hasTicks());
    }

    static final class Outputs implements Iterator<byte[]> {
        private final Iterator<byte[]> rows;
        private final DataCalls calls;
        private final Level rest;
        private final Set<Integer> sources;
        private final boolean hasTicks;
        private final Deque<Parcel> underWay = new ArrayDeque<>(); // with frames, whose answers are awaited; or FLUSH
        private final Deque<byte[]> ready = new ArrayDeque<>();
        private boolean isIdle;
        private boolean hasEnded;
        private boolean hasGivenEnd;
        private long offset = BatchEnd.NOTHING; // all before it is answered

        Outputs(
                Iterator<byte[]> rows, DataCalls calls, Level rest, Set<Integer> sources, boolean hasTicks) {
            this.rows = rows;
            this.calls = calls;
            this.rest = rest;
            this.sources = sources;
            this.hasTicks = hasTicks;
        }

        @Override
        public boolean hasNext() {
            while (ready.isEmpty() && !hasGivenEnd) {
                take();
                if (!underWay.isEmpty()) {
                    give(underWay.removeFirst());
                } else if (hasEnded) {
                    calls.end();
                    ready.add(Parcel.of(Kind.END, offset, 0).toBytes());
                    hasGivenEnd = true;
                }
            }
            return !ready.isEmpty();
        }

        @Override
        public byte[] next() {
            return ready.removeFirst();
        }

        /** Takes rows while there are some at hand, and room in the window. */
        private void take() {
            while (!hasEnded && underWay.size() < WINDOW && (underWay.isEmpty() || !isIdle)) {
                if (!rows.hasNext()) {
                    hasEnded = true;
                    return;
                }
                Parcel row = Parcel.fromBytes(rows.next());
                if (row.kind() == Kind.IDLE) {
                    isIdle = true;
                    continue;
                }
                isIdle &= row.kind() != Kind.FRAMES; // after a FLUSH there is as little to come as before it
                Parcel taken = dividedOf(row);
                underWay.add(taken);
                taken.items().stream().filter(item -> !isTick(item)).forEach(item -> calls.send(item.frame()));
            }
        }

        /** Returns a row with one item of data, where there is some, and one for each tick. */
        private Parcel dividedOf(Parcel row) {
            List<Parcel.Item> items = new ArrayList<>();
            for (Parcel.Item item : row.items()) {
                List<byte[]> data = Frames.ofPorts(item.frame(), sources);
                if (!data.isEmpty()) {
                    items.add(new Parcel.Item(item.port(), item.bucket(), item.origin(), Frames.joined(data)));
                }
                if (hasTicks) {
                    Frames.ofPorts(item.frame(), Set.of(Frames.TICK_PORT)).forEach(tick -> items.add(
                            new Parcel.Item(Frames.TICK_PORT, item.bucket(), item.origin(), Frames.tick(tick))));
                }
            }
            return new Parcel(row.kind(), row.offset(), row.messages(), items);
        }

        private static boolean isTick(Parcel.Item item) {
            return item.port() == Frames.TICK_PORT;
        }

        private void give(Parcel row) {
            if (row.kind() == Kind.FRAMES) {
                List<Parcel.Item> items = new ArrayList<>();
                for (Parcel.Item item : row.items()) {
                    if (isTick(item)) {
                        items.add(item);
                        continue;
                    }
                    for (Output output : calls.receive()) {
                        byte[] frame = output.getFrame().toByteArray();
                        items.add(new Parcel.Item(output.getPort(), output.getBucket(), item.origin(), frame));
                    }
                }
                offset = row.offset();
                ready.add(new Parcel(Kind.FRAMES, offset, row.messages(), rest.run(items)).toBytes());
            } else {
                ready.add(row.toBytes());
            }
        }
    }
}
