package org.wallaroo.spark.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import wallaroo.worker.v1.WorkerOuterClass.ProcessReply;
import wallaroo.worker.v1.WorkerOuterClass.ProcessRequest;

/** Deadlines of calls to a worker that never answers. */
class WorkerStreamTest {
    private static final long DEADLINE_MS = 300;

    @TempDir
    Path directory;

    private static WorkerStream<ProcessRequest, ProcessReply> open(WorkerChannel channel) {
        return new WorkerStream<>(channel, 0, WorkerChannel.PROCESS, DEADLINE_MS);
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
            WorkerGone gone = assertThrows(WorkerGone.class, awaited::receive);
            Suspect[] suspects = {gone.suspect(awaited.flight().name()), gone.suspect(other.flight().name())};
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
            WorkerGone gone = assertThrows(WorkerGone.class, awaited::receive);
            for (WorkerStream<?, ?> stream : List.of(awaited, other)) {
                Suspect suspect = gone.suspect(stream.flight().name());
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
}
