package org.wallaroo.spark.stage;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.wallaroo.spark.account.Account;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.FramesTest;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.OperatorFailure;

class AccountTest {
    private static final String READER = "s0";
    private static final int FIRST_SINK = 100;

    /** Returns an account with two stages without ports, for tests of single calls. */
    static Account empty() {
        return new Account(List.of(Map.of("s0", List.of(), "s1", List.of())), 0);
    }

    /** The fault of one frame with messages on its way to a stage or to the egress. */
    private enum Fault {
        NONE,
        LOST,
        TWICE
    }

    /** A drawn plan: levels of stages that take the ports of earlier stages. Some ports belong to sinks. */
    private static final class Plan {
        private static final List<Integer> EXITS = List.of(1, 2, FIRST_SINK); // of the sources

        private final Random random;
        private final List<Level> levels = new ArrayList<>();
        private final Account account;
        private Fault fault;
        private int passes; // frames with messages that arrive before the fault does

        private Plan(long seed, Fault fault) {
            random = new Random(seed);
            this.fault = fault;
            passes = random.nextInt(4);
            List<Map<String, List<Integer>>> entries = new ArrayList<>();
            List<Integer> used = new ArrayList<>(); // by stages of earlier levels: an exit may stand on several levels
            Set<Integer> free = new TreeSet<>(EXITS);
            for (int level = 0; level <= random.nextInt(3); level++) {
                entries.add(level(level, free, used));
            }
            account = new Account(entries, 7);
        }

        /**
         * Draws the stages of a level. {@code free} has the ports that reach the level, and afterwards those that leave
         * it.
         */
        private Map<String, List<Integer>> level(int level, Set<Integer> free, List<Integer> used) {
            Map<String, List<Integer>> entries = new LinkedHashMap<>();
            if (level == 0) {
                entries.put(READER, List.of(0));
            }
            List<LevelStage> stages = new ArrayList<>();
            for (int number = 0; number <= random.nextInt(3); number++) {
                String id = "s" + (10 * level + number + 1);
                List<Integer> taken = new ArrayList<>(
                        free.stream().filter(port -> port < FIRST_SINK && random.nextBoolean()).toList());
                List<Integer> again = used.stream()
                        .filter(port -> entries.values().stream().noneMatch(ports -> ports.contains(port)))
                        .filter(port -> !taken.contains(port))
                        .toList();
                if (random.nextBoolean()) {
                    taken.add(Frames.VISIT_PORT);
                }
                boolean isAgain = !again.isEmpty() && random.nextBoolean();
                int exit = isAgain ? again.get(random.nextInt(again.size())) : 10 * level + number + 3;
                stages.add(new DrawnStage(this, id, taken, List.of(exit, FIRST_SINK + random.nextInt(3))));
                entries.put(id, taken);
                free.add(exit);
            }
            entries.values().forEach(ports -> {
                free.removeAll(ports);
                used.addAll(ports);
            });
            used.removeIf(port -> port == 0 || Frames.isControl(port)); // of a source, of no stage
            levels.add(new Level(stages));
            return entries;
        }

        private JournalRow.Item frame(int port) {
            return new JournalRow.Item(port, 0, 0, FramesTest.frame(port, random.nextInt(4), 0, new byte[2]));
        }

        private List<JournalRow.Item> frames(String stage, List<Integer> ports) {
            List<JournalRow.Item> found = new ArrayList<>();
            ports.stream().filter(port -> random.nextInt(3) > 0).forEach(port -> found.add(frame(port)));
            account.gave(stage, found);
            return found;
        }

        /** Runs so many rows. Returns the number of messages in the journal up to the end of these rows. */
        private long run(int rows, long begin) {
            long messages = begin;
            for (int i = 0; i < rows; i++) {
                long came = random.nextInt(4);
                messages += came;
                account.ran(READER, Map.of(0, came));
                List<JournalRow.Item> items = frames(READER, EXITS);
                if (random.nextInt(3) == 0) {
                    items.add(new JournalRow.Item(
                            Frames.VISIT_PORT, -1, -1, FramesTest.frame(Frames.VISIT_PORT, 1, 0, new byte[2])));
                }
                for (Level level : levels) {
                    items = level.run(items);
                }
                account.delivered(arriving(
                        items.stream().filter(item -> !Frames.isControl(item.port())).toList()));
            }
            return messages;
        }

        private List<JournalRow.Item> arriving(List<JournalRow.Item> items) {
            List<JournalRow.Item> found = new ArrayList<>();
            for (JournalRow.Item item : items) {
                boolean isWrong = fault != Fault.NONE && !Frames.isControl(item.port())
                        && Frames.count(item.frame(), 0) > 0 && passes-- == 0;
                if (!isWrong || fault == Fault.TWICE) {
                    found.add(item);
                }
                if (isWrong) {
                    found.addAll(fault == Fault.TWICE ? List.of(item) : List.of());
                    fault = Fault.NONE;
                }
            }
            return found;
        }
    }

    private record DrawnStage(Plan plan, String id, List<Integer> ports, List<Integer> exits) implements LevelStage {
        @Override
        public boolean takes(int port) {
            return ports.contains(port);
        }

        @Override
        public Iterator<List<JournalRow.Item>> run(List<JournalRow.Item> items) {
            List<byte[]> frames = plan.arriving(items).stream().map(JournalRow.Item::frame).toList();
            plan.account.ran(id, Frames.countByPort(Frames.joined(frames)));
            return List.of(plan.frames(id, exits)).iterator();
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

    static IntStream seeds() {
        return IntStream.range(0, 200);
    }

    @ParameterizedTest
    @MethodSource("seeds")
    void whatArrivesAddsUp(int seed) {
        Plan plan = new Plan(seed, Fault.NONE);
        long messages = 7;
        for (int barrier = 0; barrier < 3; barrier++) {
            messages = plan.run(plan.random.nextInt(4), messages);
            plan.account.check(messages);
        }
    }

    @ParameterizedTest
    @MethodSource("seeds")
    void whatIsLostOrTwiceIsTold(int seed) {
        for (Fault fault : List.of(Fault.LOST, Fault.TWICE)) {
            Plan plan = new Plan(seed, fault);
            long messages = plan.run(20, 7);
            assertTrue(plan.fault == Fault.NONE, "it has happened");
            OperatorFailure error = assertThrows(OperatorFailure.class, () -> plan.account.check(messages));
            assertTrue(error.getMessage().startsWith("I902"), error.getMessage());
        }
    }

    @ParameterizedTest
    @MethodSource("seeds")
    void whatTheSourcesDidNotRunIsTold(int seed) {
        Plan plan = new Plan(seed, Fault.NONE);
        long messages = plan.run(3, 7);
        assertThrows(OperatorFailure.class, () -> plan.account.check(messages + 1 + seed % 3));
    }
}
