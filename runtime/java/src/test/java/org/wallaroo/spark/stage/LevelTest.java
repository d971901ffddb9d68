package org.wallaroo.spark.stage;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalRow;

class LevelTest {
    private static final int PORTS = 6;

    /** A stage that takes some ports, and emits one frame after frames have come. */
    private record Stage(Set<Integer> ports, int sent, List<Integer> came) implements LevelStage {
        @Override
        public boolean takes(int port) {
            return ports.contains(port);
        }

        @Override
        public Iterator<List<JournalRow.Item>> run(List<JournalRow.Item> items) {
            items.forEach(item -> came.add(item.port()));
            return List.of(List.of(item(sent))).iterator();
        }

        @Override
        public List<JournalRow.Item> flush() {
            return List.of();
        }

        @Override
        public void warm() {}

        @Override
        public void close() {}
    }

    private static JournalRow.Item item(int port) {
        return new JournalRow.Item(port, 0, 0, new byte[0]);
    }

    static IntStream seeds() {
        return IntStream.range(0, 300);
    }

    /**
     * Two stages may take the same port, e.g. if messages to another worker are merged with messages that come back. A
     * visit comes to each stage that takes visits, and passes on to later levels.
     */
    @ParameterizedTest
    @MethodSource("seeds")
    void eachStageGetsAllThatItTakes(int seed) {
        Random random = new Random(seed);
        List<Stage> stages = new ArrayList<>();
        for (int number = 0; number < 4; number++) {
            Set<Integer> ports = new TreeSet<>();
            IntStream.range(0, PORTS).filter(port -> random.nextInt(3) == 0).forEach(ports::add);
            if (random.nextBoolean()) {
                ports.add(Frames.VISIT_PORT);
            }
            stages.add(new Stage(ports, PORTS + number, new ArrayList<>()));
            if (number > 0 && random.nextBoolean()) {
                ports.add(PORTS + random.nextInt(number)); // of a stage before it
            }
        }
        List<Integer> entered = new ArrayList<>(
                IntStream.range(0, 5).map(number -> random.nextInt(PORTS)).boxed().toList());
        entered.add(Frames.VISIT_PORT);
        Level level = new Level(List.copyOf(stages));
        List<Integer> left = level.run(entered.stream().map(LevelTest::item).toList()).stream()
                .map(JournalRow.Item::port)
                .sorted()
                .toList();

        List<Integer> there = new ArrayList<>(entered);
        for (Stage stage : stages) {
            List<Integer> taken = there.stream().filter(stage::takes).sorted().toList();
            assertEquals(taken, stage.came().stream().sorted().toList());
            if (!taken.isEmpty()) {
                there.add(stage.sent());
            }
        }
        Set<Integer> ports = stages.stream().flatMap(stage -> stage.ports().stream()).collect(Collectors.toSet());
        ports.remove(Frames.VISIT_PORT);
        List<Integer> free = there.stream().filter(port -> !ports.contains(port)).sorted().toList();
        assertEquals(free, left);
    }
}
