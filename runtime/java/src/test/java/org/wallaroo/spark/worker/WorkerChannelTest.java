package org.wallaroo.spark.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.Status;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.OperatorFailure;
import wallaroo.worker.v1.WorkerOuterClass.Failure;
import wallaroo.worker.v1.WorkerOuterClass.InitReply;
import wallaroo.worker.v1.WorkerOuterClass.InitRequest;
import wallaroo.worker.v1.WorkerOuterClass.Reply;
import wallaroo.worker.v1.WorkerOuterClass.Request;

/** The connection to a worker, which all tasks share, and the counts of failures, which each task has. */
class WorkerChannelTest {
    @TempDir
    Path directory;

    private FakeWorker worker() throws IOException {
        return new FakeWorker(directory, () -> (request, call) -> call.sendMessage(Reply.getDefaultInstance()), () -> null);
    }

    /** An engine may end while a worker starts. The next engine must not get a half open connection. */
    @Test
    void aHandshakeThatWasInterruptedIsMadeAgain() throws IOException, InterruptedException {
        try (FakeWorker worker = new FakeWorker(directory, () -> (request, call) -> { }, () -> null)) {
            WorkerChannel channel = new WorkerChannel(worker.settings());
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

    /** If several tasks take the ends of workers at the same time, only one of them gets each end. */
    @Test
    void onlyOneTaskTakesTheEndOfAWorker() {
        WorkerConnection.takeEndings();
        int count = 20_000;
        for (int number = 0; number < count; number++) {
            WorkerConnection.giveEndings(Map.of("driver, process " + number, "it was killed"));
        }
        int taken = IntStream.range(0, 8).parallel().map(task -> WorkerConnection.takeEndings().size()).sum();
        assertEquals(count, taken);
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
            WorkerChannel channel = new WorkerChannel(worker.settings(InitRequest.newBuilder()
                    .setProtocolMin(1).setProtocolMax(1).setInterfaceHash("sha256:1").build()));
            if (text.isEmpty()) {
                assertEquals(2, channel.width());
                return;
            }
            String said = assertThrows(OperatorFailure.class, channel::width).getMessage();
            assertTrue(said.startsWith(text.substring(0, 5)) && said.contains(text.substring(5)), said);
        }
    }

    /** A worker may report only a failure. If runtime and worker both find a fault, the runtime's error is shown. */
    @ParameterizedTest
    @CsvSource({
        "0, 0, '', C513 no model",
        "1, 1, '', C513 no model",
        "1, 1, sha256:1, C513 no model",
        "0, 0, '', W416 speaks nothing",
        "2, 3, sha256:1, W416 worker \"main\" speaks protocol 2 to 3",
        "1, 1, sha256:2, W403 worker \"main\" hosts another application",
    })
    void aHandshakeReportsTheFailureOfTheWorker(int least, int most, String hash, String text) throws IOException {
        try (FakeWorker worker = new FakeWorker(directory, () -> (request, call) -> { }, () -> null)) {
            String own = text.contains("\"") ? text.substring(0, 4) + " mine" : text;
            worker.answer(InitReply.newBuilder().setProtocolMin(least).setProtocolMax(most).setInterfaceHash(hash)
                    .setFailure(Failure.newBuilder().setCode(own.substring(0, 4)).setMessage(own.substring(5))).build());
            WorkerChannel channel = new WorkerChannel(worker.settings(InitRequest.newBuilder()
                    .setProtocolMin(1).setProtocolMax(1).setInterfaceHash("sha256:1").build()));
            String said = assertThrows(OperatorFailure.class, channel::width).getMessage();
            assertTrue(said.startsWith(text), said);
        }
    }

    /** Later tasks fail, too, until the worker has memory again, since each of them repeats the handshake. */
    @Test
    void aHandshakeThatEndsFailsForEachTask() throws IOException {
        try (FakeWorker worker = new FakeWorker(directory, () -> (request, call) -> { }, () -> null)) {
            worker.refuse(Status.UNKNOWN.withDescription("MemoryError"));
            WorkerChannel channel = new WorkerChannel(worker.settings());
            String said = assertThrows(OperatorFailure.class, channel::width).getMessage();
            assertEquals(said, assertThrows(OperatorFailure.class, channel::width).getMessage());
            worker.refuse(Status.OK);
            assertEquals(1, channel.width());
        }
    }

    /** A task counts its own failures in succession. Failures and successes of other tasks do not change the count. */
    @RepeatedTest(20)
    void eachTaskCountsItsOwnFailures(RepetitionInfo repetition) throws IOException {
        Random random = new Random(repetition.getCurrentRepetition());
        try (FakeWorker worker = worker()) {
            List<WorkerChannel> tasks = Stream.generate(() -> new WorkerChannel(worker.settings())).limit(4).toList();
            int[][] counts = new int[4][3];
            tasks.get(0).width();
            for (int events = 0; events < 300; events++) {
                int task = random.nextInt(4);
                int kind = random.nextInt(16);
                WorkerChannel channel = tasks.get(task);
                if (kind == 0) {
                    channel.progressed();
                    counts[task] = new int[3];
                } else if (kind == 1) {
                    assertEquals(++counts[task][0] >= 2, isRefused("W411", () -> channel.missedDeadline("2", "s0")));
                } else if (kind < 4) {
                    Failure failure = Failure.newBuilder().setCode("X1").setRetriable(kind == 2).build();
                    int generation = channel.connection().endpoint(0).generation();
                    int before = worker.asked().size();
                    boolean isRefused = isRefused("X1", () -> failed(channel, failure, generation));
                    assertEquals(++counts[task][1] > 3 || kind == 3, isRefused);
                    assertEquals(before, worker.asked().size(), "the process that has answered goes on");
                } else {
                    WorkerGone gone = WorkerGone.ended(random.nextInt(9), null, new IllegalStateException("lost"));
                    assertEquals(++counts[task][2] > 30, isRefused("W410", () -> channel.recover(gone)));
                }
            }
        }
    }

    private static void failed(WorkerChannel channel, Failure failure, int generation) {
        try {
            channel.failed(failure, generation);
        } catch (WorkerGone gone) {
            channel.recover(gone);
        }
    }

    private static boolean isRefused(String code, Executable action) {
        try {
            action.execute();
            return false;
        } catch (OperatorFailure failure) {
            assertTrue(failure.getMessage().startsWith(code), failure.getMessage());
            return true;
        } catch (Throwable error) {
            throw new IllegalStateException(error);
        }
    }

    /** Otherwise the end of a stream would be taken for the end of the following process, which serves. */
    @Test
    void aStreamKnowsTheProcessThatItGoesTo() throws Exception {
        try (FakeWorker worker = worker()) {
            WorkerChannel channel = new WorkerChannel(worker.settings());
            WorkerChannel other = new WorkerChannel(worker.settings());
            Thread thread = new Thread(() -> {
                for (int times = 0; times < 200; times++) {
                    int generation = other.connection().endpoint(0).generation();
                    other.recover(WorkerGone.ended(generation, null, new IllegalStateException("lost")));
                    other.progressed();
                }
            });
            thread.start();
            while (thread.isAlive()) {
                var stream = WorkerStreamTest.open(channel, new TimeLimit(20_000));
                try {
                    stream.send(Request.getDefaultInstance());
                    stream.receive(new Quarantine());
                } catch (WorkerGone gone) {
                    int now = channel.connection().endpoint(0).generation();
                    assertTrue(gone.generation() < now, gone.generation() + " serves");
                }
                stream.close();
            }
            thread.join();
        }
    }

    /** The supervisor learns of unanswered calls, also if another task has connected to the next process before. */
    @Test
    void anEndIsReportedAlthoughAnotherTaskHasNoticedItFirst() throws Exception {
        Process process = new ProcessBuilder("sleep", "1000").start();
        try (FakeWorker worker = worker()) {
            worker.isProcess(1, process.pid());
            List<WorkerChannel> tasks = Stream.generate(() -> new WorkerChannel(worker.settings())).limit(3).toList();
            assertEquals(1, tasks.get(0).connection().endpoint(0).generation());
            process.destroyForcibly().waitFor();
            worker.isProcess(2, ProcessHandle.current().pid());
            assertEquals(2, tasks.get(1).connection().endpoint(0).generation());
            WorkerGone gone = WorkerGone.ended(1, null, new IllegalStateException("lost"));
            tasks.get(0).recover(gone);
            tasks.get(2).recover(gone);
            assertEquals(1, worker.asked().stream().filter("recover"::equals).count());
        }
    }

    @Test
    void workersThatNoTaskHasUsedAreStopped() throws IOException {
        try (FakeWorker worker = worker()) {
            WorkerHome.started().put(Json.parse("{}"), new WorkerHome(directory, ""));
            WorkerConnection.stopAll();
            assertEquals(List.of("stop"), worker.asked());
            assertTrue(WorkerHome.started().isEmpty());
        }
    }
}
