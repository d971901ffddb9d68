package org.wallaroo.spark.stage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.ServerCall;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.wallaroo.spark.message.FramesTest;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.StageSettings;
import org.wallaroo.spark.rpc.FakeServer;
import org.wallaroo.spark.worker.FakeWorker;
import org.wallaroo.spark.worker.FlightFile;
import org.wallaroo.spark.worker.WorkerChannel;
import wallaroo.worker.v1.WorkerOuterClass.Done;
import wallaroo.worker.v1.WorkerOuterClass.Node;
import wallaroo.worker.v1.WorkerOuterClass.NodeKind;
import wallaroo.worker.v1.WorkerOuterClass.Opening;
import wallaroo.worker.v1.WorkerOuterClass.Output;
import wallaroo.worker.v1.WorkerOuterClass.Reply;
import wallaroo.worker.v1.WorkerOuterClass.Request;
import wallaroo.worker.v1.WorkerOuterClass.StepCount;

class DataCallsTest {
    private static final String SOURCE = "0/sources/0";
    static final Opening OPENING = Opening.newBuilder()
            .setStage(FakeWorker.stage("s0")
                    .addNodes(Node.newBuilder().setPath(SOURCE).setKind(NodeKind.NODE_KIND_SOURCE))
                    .addNodes(Node.newBuilder().setPath("0/steps/0").setPort(1).addInputs(SOURCE)
                            .setKind(NodeKind.NODE_KIND_KEY)))
            .build();

    @TempDir
    Path directory;

    /** Answers data with a frame of {@code frames} messages, and reports {@code in} and {@code out} as its counts. */
    record Answers(int in, int out, int frames) implements FakeServer.Stream<Request, Reply> {
        @Override
        public void accept(Request request, ServerCall<Request, Reply> call) {
            if (!request.hasData()) {
                return;
            }
            long index = request.getData().getIndex();
            Output output = Output.newBuilder().setIndex(index).setPort(1).setBucket(3)
                    .setFrame(FakeWorker.bytes(FramesTest.keyed(1, frames))).build();
            StepCount count = StepCount.newBuilder().setPath(SOURCE).setMessagesIn(in).setMessagesOut(out).build();
            call.sendMessage(Reply.newBuilder().setOutput(output).build());
            call.sendMessage(Reply.newBuilder().setDone(Done.newBuilder().setIndex(index).addCounts(count)).build());
        }
    }

    private List<Output> answers(int in, int out, int frames) throws IOException {
        try (FakeWorker worker = new FakeWorker(directory, () -> new Answers(in, out, frames), () -> null)) {
            StageSettings settings = worker.settings();
            DataCalls calls = new DataCalls(new WorkerChannel(settings), OPENING, settings.deadlineMs(), AccountTest.empty());
            calls.send(FramesTest.frame(0, 2, 10, new byte[5]));
            calls.send(FramesTest.frame(0, 2, 12, new byte[5]));
            List<Output> outputs = new ArrayList<>(calls.receive());
            outputs.addAll(calls.receive());
            calls.close();
            return outputs;
        }
    }

    @Test
    void dataThatAddsUpIsTaken() throws IOException {
        assertEquals(2, answers(2, 2, 2).size());
    }

    @ParameterizedTest
    @CsvSource({"1, 1, 1, field messages_in: 1", "2, 3, 2, field messages_out: 3", "2, 2, 1, field messages: 1"})
    void dataThatDoesNotAddUpEndsTheQuery(int in, int out, int frames, String text) {
        OperatorFailure failure = assertThrows(OperatorFailure.class, () -> answers(in, out, frames));
        assertTrue(failure.getMessage().startsWith("W410"), failure.getMessage());
        assertTrue(failure.getMessage().contains(text), failure.getMessage());
    }

    @Test
    void anOpenThatFailsLeavesNoStream() throws IOException {
        FlightFile last = new FlightFile(directory);
        String[] parts = last.name().split("java");
        last.close();
        long number = Long.parseLong(parts[1]);
        Path first = directory.resolve(parts[0] + "java" + (number + 1));
        Path second = Files.createFile(directory.resolve(parts[0] + "java" + (number + 2)));
        try (FakeWorker worker = new FakeWorker(directory, () -> new Answers(2, 2, 2), () -> null)) {
            worker.haveEndpoints(2);
            StageSettings settings = worker.settings();
            DataCalls calls = new DataCalls(new WorkerChannel(settings), OPENING, settings.deadlineMs(), AccountTest.empty());
            assertThrows(UncheckedIOException.class, calls::open);
            assertFalse(Files.exists(first), "the first stream is open");
            Files.delete(second);
            calls.send(FramesTest.frame(0, 2, 10, new byte[5]));
            assertEquals(1, calls.receive().size());
            calls.close();
        }
    }

    /** Notes the stream on which each data comes. */
    private static final class Noted implements FakeServer.Stream<Request, Reply> {
        private final List<String> came;
        private final List<ServerCall<Request, Reply>> calls;
        private final Answers answers = new Answers(2, 2, 2);
        private String file;

        private Noted(List<String> came, List<ServerCall<Request, Reply>> calls) {
            this.came = came;
            this.calls = calls;
        }

        @Override
        public void accept(Request request, ServerCall<Request, Reply> call) {
            if (request.hasOpening()) {
                file = request.getOpening().getInFlight();
                calls.add(call);
            } else {
                came.add(file);
            }
            answers.accept(request, call);
        }
    }

    @ParameterizedTest
    @CsvSource({"2, 0", "2, 1", "2, 5", "3, 1", "3, 2", "1, 4"})
    void tasksBeginAtDifferentEndpoints(int width, int partition) throws IOException {
        List<String> came = new CopyOnWriteArrayList<>();
        try (FakeWorker worker = new FakeWorker(directory, () -> new Noted(came, new CopyOnWriteArrayList<>()), () -> null)) {
            worker.haveEndpoints(width);
            StageSettings settings = worker.settings();
            Opening opening = OPENING.toBuilder().setPartition(partition).build();
            DataCalls calls = new DataCalls(new WorkerChannel(settings), opening, settings.deadlineMs(), AccountTest.empty());
            calls.open();
            List<String> files = flights(); // streams are opened in the order of endpoints
            List<String> expected = new ArrayList<>();
            for (int data = 0; data < width + 1; data++) {
                calls.send(FramesTest.frame(0, 2, 10, new byte[5]));
                assertEquals(1, calls.receive().size());
                expected.add(files.get((partition + data) % width));
            }
            calls.close();
            assertEquals(expected, came);
        }
    }

    private List<String> flights() throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.map(Path::toString)
                    .filter(file -> file.contains("flight-"))
                    .sorted(Comparator.comparingLong(file -> Long.parseLong(file.substring(file.indexOf("java") + 4))))
                    .toList();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2})
    void aStreamThatCannotBeClosedDoesNotKeepOthersOpen(int broken) throws IOException {
        List<ServerCall<Request, Reply>> opened = new CopyOnWriteArrayList<>();
        try (FakeWorker worker = new FakeWorker(directory, () -> new Noted(new ArrayList<>(), opened), () -> null)) {
            worker.haveEndpoints(3);
            StageSettings settings = worker.settings();
            DataCalls calls = new DataCalls(new WorkerChannel(settings), OPENING, settings.deadlineMs(), AccountTest.empty());
            calls.open();
            Path file = Path.of(flights().get(broken));
            Files.delete(file);
            Files.createDirectories(file.resolve("kept"));
            assertTimeoutPreemptively(Duration.ofSeconds(30), () -> await(() -> opened.size() == 3));
            try {
                calls.close();
            } catch (UncheckedIOException error) {
                assertTrue(error.getMessage().contains(file.toString()), error.getMessage());
            }
            assertTimeoutPreemptively(Duration.ofSeconds(30), () -> await(() -> opened.stream().allMatch(ServerCall::isCancelled)));
            assertEquals(List.of(file.toString()), flights());
        }
    }

    private static void await(BooleanSupplier condition) {
        while (!condition.getAsBoolean()) {
            Thread.onSpinWait();
        }
    }
}
