package org.wallaroo.spark.stage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.ServerCall;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.wallaroo.spark.message.FramesTest;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.rpc.FakeServer;
import org.wallaroo.spark.worker.FakeWorker;
import org.wallaroo.spark.worker.FlightFile;
import org.wallaroo.spark.worker.WorkerChannel;
import wallaroo.worker.v1.WorkerOuterClass.Done;
import wallaroo.worker.v1.WorkerOuterClass.Node;
import wallaroo.worker.v1.WorkerOuterClass.NodeKind;
import wallaroo.worker.v1.WorkerOuterClass.Opening;
import wallaroo.worker.v1.WorkerOuterClass.Output;
import wallaroo.worker.v1.WorkerOuterClass.ProcessReply;
import wallaroo.worker.v1.WorkerOuterClass.ProcessRequest;
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

    /** Gives each data one frame with so many messages, and says other numbers. */
    record Answers(int in, int out, int frames) implements FakeServer.Stream<ProcessRequest, ProcessReply> {
        @Override
        public void accept(ProcessRequest request, ServerCall<ProcessRequest, ProcessReply> call) {
            if (!request.hasData()) {
                return;
            }
            long index = request.getData().getIndex();
            Output output = Output.newBuilder().setIndex(index).setPort(1).setBucket(3)
                    .setFrame(FakeWorker.bytes(FramesTest.keyed(1, frames))).build();
            StepCount count = StepCount.newBuilder().setPath(SOURCE).setMessagesIn(in).setMessagesOut(out).build();
            call.sendMessage(ProcessReply.newBuilder().setOutput(output).build());
            call.sendMessage(ProcessReply.newBuilder().setDone(Done.newBuilder().setIndex(index).addCounts(count)).build());
        }
    }

    private List<Output> answers(int in, int out, int frames) throws IOException {
        try (FakeWorker worker = new FakeWorker(directory, () -> new Answers(in, out, frames), () -> null)) {
            Settings settings = worker.settings();
            DataCalls calls = new DataCalls(WorkerChannel.of(settings), OPENING, settings.deadlineMs(), AccountTest.empty());
            calls.send(FramesTest.frame(0, 2, 10, new byte[5]));
            calls.send(FramesTest.frame(0, 2, 12, new byte[5]));
            List<Output> outputs = new java.util.ArrayList<>(calls.receive());
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
            Settings settings = worker.settings();
            DataCalls calls = new DataCalls(WorkerChannel.of(settings), OPENING, settings.deadlineMs(), AccountTest.empty());
            assertThrows(UncheckedIOException.class, calls::open);
            assertFalse(Files.exists(first), "the first stream is open");
            Files.delete(second);
            calls.send(FramesTest.frame(0, 2, 10, new byte[5]));
            assertEquals(1, calls.receive().size());
            calls.close();
        }
    }

    @Test
    void dataWithoutAnAnswerIsNotForgotten() throws IOException {
        try (FakeWorker worker = new FakeWorker(directory, () -> new Answers(2, 2, 2), () -> null)) {
            Settings settings = worker.settings();
            DataCalls calls = new DataCalls(WorkerChannel.of(settings), OPENING, settings.deadlineMs(), AccountTest.empty());
            calls.send(FramesTest.frame(0, 2, 10, new byte[5]));
            calls.send(FramesTest.frame(0, 2, 12, new byte[5]));
            calls.receive();
            OperatorFailure failure = assertThrows(OperatorFailure.class, calls::end);
            assertTrue(failure.getMessage().startsWith("I901"), failure.getMessage());
            calls.receive();
            calls.end();
        }
    }
}
