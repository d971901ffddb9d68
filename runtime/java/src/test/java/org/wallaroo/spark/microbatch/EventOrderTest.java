package org.wallaroo.spark.microbatch;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.wallaroo.spark.message.Columns;
import org.wallaroo.spark.message.FrameWriter;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.Settings;

/** Runs drawn frames of a partition. In place of the level, a function passes each message on to a later level. */
class EventOrderTest {
    private static final int RESULTS = 1;
    private static final int ROWS = 2;
    private static final int LATER = 3;

    private record Message(long timeMs, long sequence, byte value) {}

    private static Settings settings() {
        return Settings.of(Json.object(
                "applied", Json.parse(Json.object("in_time", List.of(RESULTS))),
                "later_ports", List.of(List.of(), List.of(LATER, Frames.TICK_PORT))));
    }

    private static JournalRow.Item frame(int port, List<Message> messages) {
        FrameWriter frame = new FrameWriter(port, true);
        messages.forEach(each -> frame.add(each.sequence(), each.timeMs(), new byte[1], new byte[0], new byte[] {each.value()}));
        return new JournalRow.Item(port, 0, 0, frame.toBytes());
    }

    private static List<Message> messages(JournalRow.Item item) {
        Columns frame = Columns.read(item.frame());
        return IntStream.range(0, frame.count())
                .mapToObj(at -> new Message(frame.time(at), frame.sequence(at), frame.values().get(at)[0])).toList();
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
    void resultsComeInTheOrderOfTimeAndLeaveWithTheSequencesThatTheyHad(long seed) {
        Random random = new Random(seed);
        List<Message> results = new ArrayList<>();
        List<Message> rows = new ArrayList<>();
        List<JournalRow.Item> items = new ArrayList<>();
        for (byte value = 0; value < random.nextInt(100); value++) {
            long sequence = random.nextInt(3) == 0 ? WindowTime.AFTER_ALL + random.nextInt(3) : random.nextInt(50);
            Message message = new Message(random.nextInt(-20, 20), sequence, value);
            boolean isResult = random.nextBoolean();
            List<Message> mine = isResult ? results : rows;
            mine.add(message);
            if (random.nextInt(3) == 0) {
                items.add(frame(isResult ? RESULTS : ROWS, mine));
                mine.clear();
            }
        }
        items.add(frame(RESULTS, results));
        items.add(frame(ROWS, rows));
        items.add(new JournalRow.Item(Frames.TICK_PORT, -1, 0, Frames.tick(WindowTime.AFTER_ALL + 3, 7)));
        List<Message> given = items.stream().filter(item -> item.port() == RESULTS).flatMap(item -> messages(item).stream()).toList();
        List<JournalRow.Item> came = new ArrayList<>();
        Iterator<List<JournalRow.Item>> left = new EventOrder(settings(), 1).run(items, taken -> {
            came.addAll(taken);
            return List.of(came.stream().map(item -> item.port() == Frames.TICK_PORT
                    ? item : frame(LATER, messages(item))).toList()).iterator();
        });
        List<JournalRow.Item> outputs = left.next();
        List<Message> ordered = came.stream().filter(item -> item.port() == RESULTS).flatMap(item -> messages(item).stream())
                .sorted(Comparator.comparing(Message::sequence, Long::compareUnsigned)).toList();
        Comparator<Message> byTime = Comparator.comparingLong(Message::timeMs);
        assertEquals(
                given.stream().sorted(byTime.thenComparing(Message::sequence, Long::compareUnsigned)).map(Message::value).toList(),
                ordered.stream().map(Message::value).toList());
        assertEquals(ordered.size(), ordered.stream().map(Message::sequence).distinct().count());
        ordered.forEach(each -> assertEquals(-1, Long.compareUnsigned(each.sequence(), WindowTime.AFTER_ALL)));
        for (int at = 0; at < items.size(); at++) {
            if (items.get(at).port() == RESULTS) {
                assertEquals(messages(items.get(at)), messages(outputs.get(at)));
            } else {
                assertArrayEquals(items.get(at).frame(), came.get(at).frame());
            }
        }
    }
}
