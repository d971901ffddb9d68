package org.wallaroo.spark.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.wallaroo.spark.query.Json;
import wallaroo.worker.v1.WorkerOuterClass.Opening;

/** The content of flight files, and the fate of a file whose stream is closed. */
class FlightFileTest {
    @TempDir
    Path directory;

    /** User code still runs, and may end the process later, when a message of another stream is in flight. */
    @Test
    void theFileOfAStreamThatIsGivenUpStaysWhileAMessageIsInFlight() throws IOException {
        FlightFile atWork = new FlightFile(directory);
        FlightFile atRest = new FlightFile(directory);
        WorkerStreamTest.note(Path.of(atWork.path()), new FlightFile.Mark(3, 8, 0, 0));
        WorkerStreamTest.note(Path.of(atRest.path()), new FlightFile.Mark(3, 0, 0, 0));
        for (FlightFile file : List.of(atWork, atRest, atWork)) {
            file.close();
        }
        try (Stream<Path> left = Files.list(directory)) {
            assertEquals(List.of(Path.of(atWork.path() + FlightFile.LEFT)), left.toList());
        }
    }

    @Test
    void theWorkersNoteIsRead() throws IOException {
        FlightFile file = new FlightFile(directory);
        assertEquals("", file.note());
        byte[] content = Arrays.copyOf("wrote the state".getBytes(StandardCharsets.UTF_8), 224);
        try (FileChannel channel = FileChannel.open(Path.of(file.path()), StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.wrap(content), 32);
        }
        assertEquals("wrote the state", file.note());
        Arrays.fill(content, (byte) 'x');
        try (FileChannel channel = FileChannel.open(Path.of(file.path()), StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.wrap(content), 32);
        }
        assertEquals("x".repeat(224), file.note());
        file.close();
    }

    /**
     * Spark interrupts the tasks that it kills. They close their streams, and the files of other tasks do not change.
     */
    @RepeatedTest(50)
    void anInterruptedTaskReadsAndClosesAsAnyOther(RepetitionInfo repetition) throws IOException {
        Random random = new Random(repetition.getCurrentRepetition());
        Map<FlightFile, FlightFile.Mark> open = new LinkedHashMap<>();
        Set<String> left = new HashSet<>();
        try {
            for (int steps = 0; steps < 20; steps++) {
                FlightFile file = new FlightFile(directory);
                FlightFile.Mark mark = new FlightFile.Mark(random.nextLong(), random.nextInt(2), random.nextInt(3), steps);
                Thread.interrupted();
                WorkerStreamTest.note(Path.of(file.path()), mark);
                open.put(file, mark);
                if (random.nextBoolean()) {
                    Thread.currentThread().interrupt();
                }
                open.forEach((each, noted) -> assertEquals(noted, each.read()));
                assertEquals(open.keySet().stream().filter(each -> mark.message() == 0 || each == file)
                        .filter(each -> isBeside(mark, open.get(each))).map(FlightFile::name)
                        .collect(Collectors.toSet()),
                        file.look().keySet().stream().filter(each -> !each.endsWith(FlightFile.LEFT))
                        .collect(Collectors.toSet()));
                FlightFile first = open.keySet().iterator().next();
                if (random.nextBoolean()) {
                    first.close();
                    if (open.remove(first).message() != 0) {
                        left.add(first.name() + FlightFile.LEFT);
                    }
                    assertEquals(new FlightFile.Mark(0, 0, 0, 0), first.read());
                    assertEquals("", first.note());
                }
            }
            open.forEach((each, noted) -> each.close());
        } finally {
            Thread.interrupted();
        }
        open.forEach((each, noted) -> left.addAll(noted.message() != 0 ? Set.of(each.name() + FlightFile.LEFT) : Set.of()));
        try (Stream<Path> found = Files.list(directory)) {
            assertEquals(left, found.map(each -> each.getFileName().toString()).collect(Collectors.toSet()));
        }
    }

    private static boolean isBeside(FlightFile.Mark own, FlightFile.Mark other) {
        return own.process() == other.process() || own.process() == 0 || other.process() == 0;
    }

    /** No error is needed, because the stream fails when it is opened: the worker is gone, too. */
    @Test
    void aDirectoryThatIsGoneHasNoFile() {
        FlightFile file = new FlightFile(directory.resolve("gone"));
        assertEquals("", file.path() + file.note());
        assertEquals(Map.of(file.name(), new FlightFile.Mark(0, 0, 0, 0)), file.look());
        file.close();
    }

    @ParameterizedTest
    @CsvSource({"0, '', CRASHED", "3, '', CRASHED", "-11, '', CRASHED", "-6, '', CRASHED", "-9, '', KILLED",
        "-15, '', KILLED", "-9, another stream's call hung, ''"})
    void theEndOfAProcessTellsOfThoseInFlight(int status, String killedFor, String cause) {
        FlightFile there = new FlightFile(directory);
        FlightFile elsewhere = new FlightFile(directory);
        JsonNode ending = Json.parse(Json.object(
                "status", status, "killed_for", killedFor, "at_work", Map.of(there.name(), List.of(1, 2))));
        Suspect suspect = Suspect.of(ending, there);
        assertEquals(cause, suspect == null ? "" : suspect.cause().name());
        assertEquals(suspect == null ? 0 : 3, suspect == null ? 0 : suspect.index() + suspect.ordinal());
        assertNull(Suspect.of(ending, elsewhere));
        assertNull(Suspect.of(null, there));
        there.close();
        elsewhere.close();
    }
}
