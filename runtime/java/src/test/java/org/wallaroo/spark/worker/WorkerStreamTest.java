package org.wallaroo.spark.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.grpc.Metadata;
import io.grpc.Status;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.OperatorFailure;
import wallaroo.worker.v1.WorkerOuterClass.InitReply;
import wallaroo.worker.v1.WorkerOuterClass.InitRequest;
import wallaroo.worker.v1.WorkerOuterClass.Opening;
import wallaroo.worker.v1.WorkerOuterClass.ProcessReply;
import wallaroo.worker.v1.WorkerOuterClass.ProcessRequest;

/** Deadlines of calls to a worker that never answers. */
class WorkerStreamTest {
    private static final long DEADLINE_MS = 300;

    @TempDir
    Path directory;

    private static WorkerStream<ProcessRequest, ProcessReply> open(WorkerChannel channel) {
        return new WorkerStream<>(channel, 0, WorkerChannel.PROCESS, Opening.getDefaultInstance(), new Deadline(DEADLINE_MS));
    }

    private static void note(FlightFile flight, long call, long ordinal) throws IOException {
        ByteBuffer words = ByteBuffer.allocate(32).order(ByteOrder.LITTLE_ENDIAN);
        words.putLong(0, call).putLong(8, ordinal + 1);
        Files.write(Path.of(flight.path()), words.array());
    }

    private WorkerGone missed(long... ordinals) throws IOException {
        try (FakeWorker worker = new FakeWorker(directory, () -> (request, call) -> { }, () -> null)) {
            WorkerChannel channel = WorkerChannel.of(worker.settings());
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

    /** The awaited call is to run alone, and waits for the other one. */
    @Test
    void theMessageInFlightOfAnotherCallIsTheSuspectWhenTheAwaitedOneHasNone() throws IOException {
        missed(-1, 9);
    }

    /** Its user code still runs, and may end the process while a message of another stream is in flight. */
    @Test
    void theFileOfAStreamThatIsGivenUpStaysWhileAMessageIsInFlight() throws IOException {
        FlightFile atWork = new FlightFile(directory);
        FlightFile atRest = new FlightFile(directory);
        note(atWork, 3, 7);
        note(atRest, 3, -1);
        for (FlightFile file : List.of(atWork, atRest, atWork)) {
            file.close();
        }
        try (Stream<Path> left = Files.list(directory)) {
            assertEquals(List.of(Path.of(atWork.path() + FlightFile.LEFT)), left.toList());
        }
    }

    /** The end of a process may be noticed late; nobody has hung then. */
    @Test
    void aMessageInAProcessThatEndedByItselfHasNotHung() throws IOException {
        try (FakeWorker worker = new FakeWorker(directory, () -> (request, call) -> { }, () -> null)) {
            WorkerChannel channel = WorkerChannel.of(worker.settings());
            var awaited = open(channel);
            var other = open(channel);
            note(awaited.flight(), 3, 7);
            Map<String, Object> atWork = Map.of(
                    awaited.flight().name(), List.of(3, 7), other.flight().name(), List.of(5, 9));
            worker.haveEnded(Map.of("status", 4, "killed_for", "", "at_work", atWork));
            WorkerGone gone = assertThrows(WorkerGone.class, () -> awaited.receive(new Quarantine()));
            for (WorkerStream<?, ?> stream : List.of(awaited, other)) {
                Suspect suspect = gone.suspect(stream.flight());
                assertEquals(Suspect.Cause.CRASHED, suspect.cause());
                assertTrue(suspect.isShared());
                stream.close();
            }
        }
    }

    /** A look that is in time counts in full; one that comes late, as on an overloaded machine, no more than that. */
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

    /** An engine that ends while a worker begins leaves nothing half open to the next engine. */
    @Test
    void aHandshakeThatWasInterruptedIsMadeAgain() throws IOException, InterruptedException {
        try (FakeWorker worker = new FakeWorker(directory, () -> (request, call) -> { }, () -> null)) {
            WorkerChannel channel = WorkerChannel.of(worker.settings());
            worker.beSilent(true);
            Thread engine = new Thread(() -> assertThrows(IllegalStateException.class, channel::width));
            engine.start();
            worker.awaitSilence();
            engine.interrupt();
            engine.join();
            worker.beSilent(false);
            assertEquals(1, channel.width());
        }
    }

    /** Writes what a worker would, while a stream is awaited. */
    private static Thread worker(FlightFile flight, long until, long message) {
        Thread thread = new Thread(() -> {
            try {
                for (long progress = 1; System.nanoTime() < until; progress++) {
                    note(flight, 3, message, progress);
                    Thread.sleep(20);
                }
            } catch (IOException | InterruptedException error) {
                throw new IllegalStateException(error);
            }
        });
        thread.start();
        return thread;
    }

    private static void note(FlightFile flight, long call, long ordinal, long progress) throws IOException {
        ByteBuffer words = ByteBuffer.allocate(32).order(ByteOrder.LITTLE_ENDIAN);
        words.putLong(0, call).putLong(8, ordinal + 1).putLong(24, progress);
        try (FileChannel file = FileChannel.open(Path.of(flight.path()), StandardOpenOption.WRITE)) {
            file.write(words, 0);
        }
    }

    /** Returns after how many milliseconds a call is given up, in which messages have hung. */
    private long waited(long ordinal, int hung, long progressMs, boolean isBehind) throws Exception {
        try (FakeWorker worker = new FakeWorker(directory, () -> (request, call) -> { }, () -> null)) {
            WorkerChannel channel = WorkerChannel.of(worker.settings());
            Quarantine quarantine = new Quarantine();
            for (int i = 0; i < hung; i++) {
                quarantine.learn(new Suspect(0, 50 + i, Suspect.Cause.HUNG, "2", false, ""));
            }
            var awaited = new WorkerStream<>(channel, 0, WorkerChannel.PROCESS, Opening.getDefaultInstance(), new Deadline(2000));
            var other = open(channel);
            note(awaited.flight(), 3, ordinal, 0);
            long begin = System.nanoTime();
            long until = begin + progressMs * 1_000_000;
            Thread writer = worker(isBehind ? other.flight() : awaited.flight(), until, isBehind ? 5 : ordinal);
            assertThrows(RuntimeException.class, () -> awaited.receive(quarantine));
            long waited = (System.nanoTime() - begin) / 1_000_000;
            writer.join();
            awaited.close();
            other.close();
            return waited;
        }
    }

    @Test
    void progressPutsADeadlineOff() throws Exception {
        long waited = waited(7, 1, 1500, false);
        assertTrue(waited >= 2500, waited + " ms");
    }

    /** A worker that has hung may read, write and wait as long as before: only its messages are under suspicion. */
    @ParameterizedTest
    @CsvSource({"7, 1, false, 1000, 2000", "-1, 1, false, 2000, 4000", "7, 0, false, 2000, 4000", "-1, 1, true, 4000, 8000"})
    void aShorterTimeIsForMessagesAlone(long ordinal, int hung, boolean isBehind, long least, long most) throws Exception {
        long waited = waited(ordinal, hung, isBehind ? 4500 : 0, isBehind);
        assertTrue(least <= waited && waited < most, waited + " ms");
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
                var stream = open(WorkerChannel.of(worker.settings()));
                stream.send(ProcessRequest.getDefaultInstance());
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

    @ParameterizedTest
    @CsvSource({
        "1, 1, sha256:1, ''",
        "0, 3, sha256:1, ''",
        "2, 3, sha256:1, 'W416 speaks protocol 2 to 3; the runtime speaks 1'",
        "0, 0, sha256:1, 'W416 speaks protocol 0; the runtime speaks 1'",
        "1, 1, sha256:2, 'W403 its interface hash is sha256:2; the topology has sha256:1'",
    })
    void aHandshakeRefuses(int least, int most, String hash, String text) throws IOException {
        try (FakeWorker worker = new FakeWorker(directory, () -> (request, call) -> { }, () -> null)) {
            worker.haveEndpoints(2);
            worker.answer(InitReply.newBuilder().setProtocolMin(least).setProtocolMax(most).setInterfaceHash(hash).build());
            WorkerChannel channel = WorkerChannel.of(worker.settings(InitRequest.newBuilder()
                    .setProtocolMin(1).setProtocolMax(1).setInterfaceHash("sha256:1").build()));
            if (text.isEmpty()) {
                assertEquals(2, channel.width());
                return;
            }
            String said = assertThrows(OperatorFailure.class, channel::width).getMessage();
            assertTrue(said.startsWith(text.substring(0, 5)) && said.contains(text.substring(5)), said);
        }
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
