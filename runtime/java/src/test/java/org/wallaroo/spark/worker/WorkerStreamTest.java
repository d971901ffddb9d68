package org.wallaroo.spark.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.Metadata;
import io.grpc.Status;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import wallaroo.worker.v1.WorkerOuterClass.Opening;
import wallaroo.worker.v1.WorkerOuterClass.Request;

/** Calls to a worker that never answers, and their deadlines. */
class WorkerStreamTest {
    private static final long DEADLINE_MS = 300;

    @TempDir
    Path directory;

    private static WorkerStream open(WorkerChannel channel) {
        return open(channel, new TimeLimit(DEADLINE_MS));
    }

    static WorkerStream open(WorkerChannel channel, TimeLimit deadline) {
        return new WorkerStream(channel, 0, WorkerChannel.PROCESS, Opening.getDefaultInstance(), deadline);
    }

    private static void note(FlightFile flight, long call, long ordinal) throws IOException {
        note(Path.of(flight.path()), new FlightFile.Mark(call, ordinal + 1, 0, 0));
    }

    /** Writes a mark into a flight file, as a worker does. */
    static void note(Path path, FlightFile.Mark mark) throws IOException {
        ByteBuffer words = ByteBuffer.allocate(32).order(ByteOrder.LITTLE_ENDIAN);
        words.putLong(mark.call()).putLong(mark.message()).putLong(mark.process()).putLong(mark.progress()).flip();
        try (FileChannel file = FileChannel.open(path, StandardOpenOption.WRITE, StandardOpenOption.CREATE)) {
            file.write(words, 0);
        }
    }

    /** Starts a thread that lets a message make progress for some milliseconds. */
    private static Thread worker(Path path, long milliseconds, long ordinal, long process) {
        long until = System.nanoTime() + milliseconds * 1_000_000;
        Thread thread = new Thread(() -> {
            try {
                for (long progress = 1; System.nanoTime() < until; progress++) {
                    note(path, new FlightFile.Mark(3, ordinal + 1, process, progress));
                    Thread.sleep(20);
                }
            } catch (IOException | InterruptedException error) {
                throw new IllegalStateException(error);
            }
        });
        thread.start();
        return thread;
    }

    private WorkerGone missed(long... ordinals) throws IOException {
        try (FakeWorker worker = new FakeWorker(directory, () -> (request, call) -> { }, () -> null)) {
            WorkerChannel channel = new WorkerChannel(worker.settings());
            var awaited = open(channel);
            var other = open(channel);
            note(awaited.flight(), 3, ordinals[0]);
            note(other.flight(), 5, ordinals[1]);
            WorkerGone gone = assertThrows(WorkerGone.class, () -> awaited.receive(new Quarantine()));
            Suspect[] suspects = {gone.suspect(awaited.flight()), gone.suspect(other.flight())};
            assertEquals(1, Arrays.stream(suspects).filter(suspect -> suspect != null).count());
            assertEquals(Suspect.Cause.HUNG, (suspects[0] == null ? suspects[1] : suspects[0]).cause());
            assertNull(suspects[ordinals[0] < 0 ? 0 : 1]);
            awaited.close();
            other.close();
            return gone;
        }
    }

    @Test
    void theMessageInFlightOfTheAwaitedCallIsTheSuspect() throws IOException {
        missed(7, 9);
    }

    /** The awaited call has to run alone, so it waits for the other call, whose message hangs. */
    @Test
    void theMessageInFlightOfAnotherCallIsTheSuspectWhenTheAwaitedOneHasNone() throws IOException {
        missed(-1, 9);
    }

    /** The end of a process may be noticed after the deadline. The message in flight is then no hanging one. */
    @Test
    void aMessageInAProcessThatEndedByItselfHasNotHung() throws IOException {
        try (FakeWorker worker = new FakeWorker(directory, () -> (request, call) -> { }, () -> null)) {
            WorkerChannel channel = new WorkerChannel(worker.settings());
            var awaited = open(channel);
            var other = open(channel);
            note(awaited.flight(), 3, 7);
            Map<String, Object> atWork = Map.of(
                    awaited.flight().name(), List.of(3, 7), other.flight().name(), List.of(5, 9));
            worker.haveEnded(Map.of("status", 4, "killed_for", "", "at_work", atWork));
            WorkerGone gone = assertThrows(WorkerGone.class, () -> awaited.receive(new Quarantine()));
            for (WorkerStream stream : List.of(awaited, other)) {
                Suspect suspect = gone.suspect(stream.flight());
                assertEquals(Suspect.Cause.CRASHED, suspect.cause());
                assertTrue(suspect.isShared());
                stream.close();
            }
        }
    }

    /** The time since the previous look counts in full if the look is in time, and at most 25 ns if it comes late. */
    @RepeatedTest(20)
    void looksThatComeLateCountLittle(RepetitionInfo repetition) {
        Random random = new Random(repetition.getCurrentRepetition());
        long now = random.nextLong();
        long waited = 0;
        IdleTimer timer = new IdleTimer(now, 25);
        for (int looks = 1; looks < 20; looks++) {
            boolean isLate = random.nextBoolean();
            long since = isLate ? random.nextInt(26, 100_000) : random.nextInt(26);
            now += since;
            assertEquals(isLate ? 25 : since, timer.look(now) - waited);
            waited = timer.look(now);
        }
    }

    /**
     * Returns the milliseconds after which a call is given up, if {@code hung} messages of the call have hung before.
     */
    private long waited(long ordinal, int hung, long progressMs) throws Exception {
        try (FakeWorker worker = new FakeWorker(directory, () -> (request, call) -> { }, () -> null)) {
            WorkerChannel channel = new WorkerChannel(worker.settings());
            Quarantine quarantine = new Quarantine();
            for (int i = 0; i < hung; i++) {
                quarantine.learn(new Suspect(0, 50 + i, Suspect.Cause.HUNG, "2", false, ""));
            }
            var awaited = open(channel, new TimeLimit(2000));
            note(awaited.flight(), 3, ordinal);
            long begin = System.nanoTime(); // before the worker's clock: it may note its progress a little too early
            Thread writer = worker(Path.of(awaited.flight().path()), progressMs, ordinal, 0);
            givenUp(awaited, quarantine);
            long waited = (System.nanoTime() - begin) / 1_000_000;
            writer.join();
            awaited.close();
            return waited;
        }
    }

    private static long givenUp(WorkerStream awaited, Quarantine quarantine) {
        long begin = System.nanoTime();
        assertThrows(RuntimeException.class, () -> awaited.receive(quarantine));
        return (System.nanoTime() - begin) / 1_000_000;
    }

    @Test
    void progressPutsADeadlineOff() throws Exception {
        long waited = waited(7, 1, 1500);
        assertTrue(waited >= 2500, waited + " ms");
    }

    /** After a message has hung, other messages of the call get less time, but reading, writing and waiting do not. */
    @ParameterizedTest
    @CsvSource({"7, 1, 1000, 2000", "-1, 1, 2000, 4000", "7, 0, 2000, 4000"})
    void aShorterTimeIsForMessagesAlone(long ordinal, int hung, long least, long most) throws Exception {
        long waited = waited(ordinal, hung, 0);
        assertTrue(least <= waited && waited < most, waited + " ms");
    }

    /**
     * Calls of one process may wait for each other. A file without a stream is of another client, or of a closed
     * stream.
     */
    @ParameterizedTest
    @CsvSource({"task, 7, true", "query, 7, true", "flight-1-0.left, 7, true", "flight-1-0, 7, true",
        "flight-1-0, 0, true", "flight-1-0, 8, false"})
    void progressOfAnotherCallOfTheProcessPutsADeadlineOff(String who, long process, boolean isSame) throws Exception {
        try (FakeWorker worker = new FakeWorker(directory, () -> (request, call) -> { }, () -> null)) {
            WorkerChannel channel = new WorkerChannel(worker.settings());
            TimeLimit deadline = new TimeLimit(400);
            var awaited = open(channel, deadline);
            note(Path.of(awaited.flight().path()), new FlightFile.Mark(3, 0, 7, 0));
            var other = who.equals("task") ? open(channel, deadline)
                    : who.equals("query") ? open(new WorkerChannel(worker.settings())) : null;
            Path path = other == null ? directory.resolve(who) : Path.of(other.flight().path());
            Thread writer = worker(path, 1600, 9, process);
            long waited = givenUp(awaited, new Quarantine());
            writer.join();
            awaited.close();
            if (other != null) {
                other.close();
            }
            assertEquals(isSame, waited >= 1600, waited + " ms");
        }
    }

    /** If another task awaits the hanging call, this task first waits until the other one has ended the call. */
    @ParameterizedTest
    @CsvSource({"true, 1000, 2000", "false, 2000, 4000"})
    void aCallThatHangsIsLeftToTheTaskThatAwaitsIt(boolean isOwn, long least, long most) throws IOException {
        try (FakeWorker worker = new FakeWorker(directory, () -> (request, call) -> { }, () -> null)) {
            WorkerChannel channel = new WorkerChannel(worker.settings());
            TimeLimit deadline = new TimeLimit(1000);
            var awaited = open(channel, deadline);
            var other = open(channel, isOwn ? deadline : new TimeLimit(1000));
            note(other.flight(), 5, 9);
            long waited = givenUp(awaited, new Quarantine());
            assertTrue(least <= waited && waited < most, waited + " ms");
            awaited.close();
            other.close();
        }
    }

    @ParameterizedTest
    @EnumSource(Status.Code.class)
    void aStreamThatBreaksIsRepeatedOrBreaksARule(Status.Code code) throws IOException {
        Set<Status.Code> lost = Set.of(Status.Code.UNAVAILABLE, Status.Code.CANCELLED, Status.Code.INTERNAL,
                Status.Code.ABORTED, Status.Code.DATA_LOSS);
        for (String text : List.of("too large", "Exception serializing response: MemoryError", "cannot allocate memory")) {
            Status status = code.toStatus().withDescription(text);
            try (FakeWorker worker = new FakeWorker(Files.createTempDirectory(directory, ""),
                    () -> (request, call) -> call.close(status, new Metadata()), () -> null)) {
                var stream = open(new WorkerChannel(worker.settings()));
                stream.send(Request.getDefaultInstance());
                RuntimeException broken = assertThrows(RuntimeException.class, () -> stream.receive(new Quarantine()));
                stream.close();
                if (lost.contains(code)) {
                    assertTrue(broken instanceof WorkerGone, broken.toString());
                    continue;
                }
                String expected = text.startsWith("too") || code == Status.Code.OK ? "W410 " : "W417 ";
                assertTrue(broken.getMessage().startsWith(expected), broken.getMessage());
                String said = code == Status.Code.OK ? "it ended a stream that was not finished" : code + ": " + text;
                assertTrue(broken.getMessage().contains(said), broken.getMessage());
            }
        }
    }
}
