package org.wallaroo.spark.microbatch;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.wallaroo.spark.message.Columns;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Settings;

/**
 * Runs a level of an application that a PySpark job applies ({@code apply}). Steps that get results of windows or
 * timers get their messages in the order of event time.
 *
 * <p>A result has the sequence of the message or tick that made it, and workers process messages in the order of
 * sequences. A result of a key without further messages is made late, and would follow newer results of other keys. So
 * during the call the messages have other sequences: their positions in the order of event time.
 */
final class EventOrder {
    private final Set<Integer> ports;
    private final Set<Integer> later;
    private long[] sequences = {}; // sequence of each message, by its place

    EventOrder(Settings settings, int level) {
        ports = settings.applied().inTime();
        later = settings.laterPorts().get(level);
    }

    private record Placed(long timeMs, long sequence, int item, int index) {}

    /**
     * Runs a partition's frames. Messages for steps in event time get new sequences in the order of their times.
     * Outputs for later levels get the original sequences again.
     */
    Iterator<List<JournalRow.Item>> run(
            List<JournalRow.Item> items, Function<List<JournalRow.Item>, Iterator<List<JournalRow.Item>>> level) {
        Iterator<List<JournalRow.Item>> outputs = level.apply(placed(items));
        return new Iterator<>() {
            @Override
            public boolean hasNext() {
                return outputs.hasNext();
            }

            @Override
            public List<JournalRow.Item> next() {
                return sequences.length == 0 ? outputs.next() : outputs.next().stream().map(EventOrder.this::restored).toList();
            }
        };
    }

    private List<JournalRow.Item> placed(List<JournalRow.Item> items) {
        List<Placed> messages = new ArrayList<>();
        for (int at = 0; at < items.size(); at++) {
            if (ports.contains(items.get(at).port()) && Frames.count(items.get(at).frame(), 0) > 0) {
                Columns frame = Columns.read(items.get(at).frame());
                for (int index = 0; index < frame.count(); index++) {
                    messages.add(new Placed(frame.time(index), frame.sequence(index), at, index));
                }
            }
        }
        messages.sort(Comparator.comparingLong(Placed::timeMs).thenComparing(Placed::sequence, Long::compareUnsigned));
        sequences = messages.stream().mapToLong(Placed::sequence).toArray();
        Map<Integer, long[]> places = new HashMap<>(); // of the messages of each item
        for (int place = 0; place < sequences.length; place++) {
            Placed message = messages.get(place);
            byte[] frame = items.get(message.item()).frame();
            places.computeIfAbsent(message.item(), at -> new long[(int) Frames.count(frame, 0)])[message.index()] =
                    first() + place;
        }
        List<JournalRow.Item> placed = new ArrayList<>(items);
        places.forEach((at, numbers) -> placed.set(at, numbered(items.get(at), numbers)));
        return placed;
    }

    /**
     * Returns the sequence of the first message in event time. These messages come after all others, and before ticks.
     */
    private long first() {
        return WindowTime.AFTER_ALL - sequences.length;
    }

    private JournalRow.Item restored(JournalRow.Item item) {
        if (!later.contains(item.port()) || Frames.isControl(item.port()) || Frames.count(item.frame(), 0) == 0) {
            return item;
        }
        Columns frame = Columns.read(item.frame());
        return numbered(item, IntStream.range(0, frame.count()).mapToLong(at -> sequence(frame.sequence(at))).toArray());
    }

    private long sequence(long number) {
        long place = number - first();
        return 0 <= place && place < sequences.length ? sequences[(int) place] : number;
    }

    private static JournalRow.Item numbered(JournalRow.Item item, long[] numbers) {
        byte[] frame = Columns.read(item.frame()).withSequences(numbers).toBytes();
        return new JournalRow.Item(item.port(), item.bucket(), item.origin(), frame);
    }
}
