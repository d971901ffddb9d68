package org.wallaroo.spark.stage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.ServerCall;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.wallaroo.spark.bucket.PlainStore;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.FramesTest;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.message.LetterFrame;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.StageSettings;
import org.wallaroo.spark.rpc.FakeServer;
import org.wallaroo.spark.worker.FakeWorker;
import org.wallaroo.spark.worker.WorkerChannel;
import wallaroo.worker.v1.WorkerOuterClass.DeadLetter;
import wallaroo.worker.v1.WorkerOuterClass.Failure;
import wallaroo.worker.v1.WorkerOuterClass.Node;
import wallaroo.worker.v1.WorkerOuterClass.NodeKind;
import wallaroo.worker.v1.WorkerOuterClass.Opening;
import wallaroo.worker.v1.WorkerOuterClass.Output;
import wallaroo.worker.v1.WorkerOuterClass.Released;
import wallaroo.worker.v1.WorkerOuterClass.StateChange;
import wallaroo.worker.v1.WorkerOuterClass.Done;
import wallaroo.worker.v1.WorkerOuterClass.Reply;
import wallaroo.worker.v1.WorkerOuterClass.Request;
import wallaroo.worker.v1.WorkerOuterClass.StepCount;

class BucketCallsTest {
    private static final String STEP = "0/steps/1";
    private static final String SINK = "0/sinks/0";
    private static final int LETTERS = Frames.DEAD_LETTER_PORT;
    private static final Opening OPENING = Opening.newBuilder()
            .setStage(FakeWorker.stage("s1")
                    .addNodes(Node.newBuilder().setPath(STEP).setPort(1).setStatePort(1)
                            .setKind(NodeKind.NODE_KIND_STATE_COMPUTATION))
                    .addNodes(Node.newBuilder().setPath(SINK).setPort(2).addInputs(STEP)
                            .setKind(NodeKind.NODE_KIND_SINK)))
            .build();

    @TempDir
    Path directory;

    private static LetterFrame.Letter letter(long sequence, String path) {
        byte[] value = DeadLetter.newBuilder().setSequence(sequence).setPath(path).build().toByteArray();
        return new LetterFrame.Letter(sequence, path, value);
    }

    private static Reply output(long index, int port, byte[] frame) {
        return Reply.newBuilder()
                .setOutput(Output.newBuilder().setIndex(index).setPort(port).setBucket(-1).setFrame(FakeWorker.bytes(frame)))
                .build();
    }

    private static Reply letters(long index, LetterFrame.Letter... letters) {
        return output(index, LETTERS, new LetterFrame(5, List.of(letters)).toBytes());
    }

    private static Reply released(long index) {
        return Reply.newBuilder().setReleased(Released.newBuilder().setIndex(index)).build();
    }

    private static byte[] messages(int port, int count, long sequence) {
        return FramesTest.frame(port, count, sequence, new byte[1 + count]);
    }

    /**
     * Reports at the end of a call that the state after the second message cannot be written, unless the call is
     * careful.
     */
    private static final class LateFailure implements FakeServer.Stream<Request, Reply> {
        private int part;

        @Override
        public void accept(Request request, ServerCall<Request, Reply> call) {
            if (!request.hasBucket()) {
                return;
            }
            long index = request.getBucket().getIndex();
            boolean isCareful = request.getBucket().getCareful();
            part++;
            if (part == 1) {
                call.sendMessage(output(index, 2, messages(2, isCareful ? 1 : 2, 1)));
                call.sendMessage(isCareful ? letters(index, letter(0, STEP), letter(2, STEP)) : letters(index, letter(0, STEP)));
            } else if (part == 2) {
                call.sendMessage(output(index, 2, messages(2, 1, 3)));
            } else if (!isCareful) {
                call.sendMessage(Reply.newBuilder().setFailure(Failure.newBuilder().setCode("C511")).build());
                return;
            } else {
                call.sendMessage(Reply.newBuilder().setDone(Done.newBuilder().setIndex(index).setNonce(9)
                        .addCounts(StepCount.newBuilder().setPath(STEP).setMessagesIn(4).setMessagesOut(2).setDeadLetters(2))
                        .addCounts(StepCount.newBuilder().setPath(SINK).setMessagesIn(2).setMessagesOut(2))).build());
                return;
            }
            call.sendMessage(released(index));
        }
    }

    @Test
    void aMessageThatFailsWhenItsCallIsMadeAgainIsADeadLetter() throws Exception {
        PlainStore store = new PlainStore();
        try (FakeWorker worker = new FakeWorker(directory, () -> null, LateFailure::new)) {
            StageSettings settings = worker.settings();
            BucketCalls calls = new BucketCalls(new WorkerChannel(settings), OPENING, store, settings, AccountTest.empty(), false);
            List<JournalRow.Item> outputs = new ArrayList<>();
            calls.run(List.of(new JournalRow.Item(1, 3, -1, messages(1, 3, 0)))).forEachRemaining(outputs::addAll);
            calls.run(List.of(new JournalRow.Item(1, 3, -1, messages(1, 1, 3)))).forEachRemaining(outputs::addAll);
            assertEquals(List.of(2, LETTERS, 2), outputs.stream().map(JournalRow.Item::port).toList());
            List<JournalRow.Item> late = calls.flush();
            calls.close();
            assertEquals(List.of(LETTERS), late.stream().map(JournalRow.Item::port).toList(), "no result leaves twice");
            assertEquals(3, late.get(0).origin());
            assertEquals(List.of(2L), LetterFrame.read(late.get(0).frame()).letters().stream()
                    .map(LetterFrame.Letter::sequence).toList());
            assertTrue(calls.isIdle());
            assertEquals(List.of(3), store.stored());
            assertEquals(1, store.version(3).counter());
        }
    }

    private static byte[] cut(byte[] frame) {
        return Arrays.copyOf(frame, frame.length - 1);
    }

    private static StepCount count(String path, int in, int out, int dead) {
        return StepCount.newBuilder().setPath(path).setMessagesIn(in).setMessagesOut(out).setDeadLetters(dead).build();
    }

    /** Answers a call of one part, and breaks one rule of the protocol. */
    private record Faulty(String fault) implements FakeServer.Stream<Request, Reply> {
        @Override
        public void accept(Request request, ServerCall<Request, Reply> call) {
            if (!request.hasBucket()) {
                return;
            }
            long index = request.getBucket().getIndex();
            if (request.getBucket().getRelease()) {
                call.sendMessage(faultyOutput(index));
                call.sendMessage(released(index));
                return;
            }
            call.sendMessage(Reply.newBuilder()
                    .setChange(StateChange.newBuilder().setIndex(index).addEntries(FakeWorker.bytes(change())))
                    .build());
            call.sendMessage(Reply.newBuilder()
                    .setDone(Done.newBuilder().setIndex(index).setNonce(9).addAllCounts(counts()))
                    .build());
        }

        private Reply faultyOutput(long index) {
            return switch (fault) {
                case "port" -> output(index, 55, messages(55, 2, 0));
                case "frame port" -> output(index, 2, messages(55, 2, 0));
                case "damage" -> output(index, 2, cut(messages(2, 2, 0)));
                default -> output(index, 2, messages(2, 2, 0));
            };
        }

        private byte[] change() {
            return switch (fault) {
                case "change port" -> FramesTest.keyed(2, 1);
                case "change cut" -> cut(FramesTest.keyed(1, 1));
                case "change without keys" -> messages(1, 1, 0);
                default -> FramesTest.keyed(1, 1);
            };
        }

        private List<StepCount> counts() {
            StepCount step = count(STEP, 2, 2, 0);
            StepCount sink = count(SINK, 2, 2, 0);
            return switch (fault) {
                case "no counts" -> List.of();
                case "in" -> List.of(count(STEP, 3, 2, 0), sink);
                case "out" -> List.of(count(STEP, 2, 3, 0), sink);
                case "sink in" -> List.of(step, count(SINK, 1, 2, 0));
                case "sink" -> List.of(step, count(SINK, 2, 1, 0));
                case "dead" -> List.of(count(STEP, 2, 2, 1), sink);
                case "path" -> List.of(step, sink, count("evil", 1, 1, 0));
                default -> List.of(step, sink);
            };
        }
    }

    private List<JournalRow.Item> answersOf(String fault) throws IOException {
        try (FakeWorker worker = new FakeWorker(directory, () -> null, () -> new Faulty(fault))) {
            StageSettings settings = worker.settings();
            BucketCalls calls = new BucketCalls(new WorkerChannel(settings), OPENING, new PlainStore(), settings, AccountTest.empty(), false);
            List<JournalRow.Item> outputs = new ArrayList<>();
            calls.run(List.of(new JournalRow.Item(1, 3, -1, messages(1, 2, 0)))).forEachRemaining(outputs::addAll);
            outputs.addAll(calls.flush());
            calls.close();
            return outputs;
        }
    }

    @Test
    void aCallThatAddsUpIsTaken() throws Exception {
        assertEquals(1, answersOf("").size());
    }

    @ParameterizedTest
    @CsvSource({
        "port, W410, field port: 55",
        "frame port, W410, field frame: port 55",
        "damage, W410, the frame is not whole",
        "change port, W410, field change: port 2",
        "change cut, W410, the frame is not whole",
        "change without keys, W410, field change: flags 0",
        "no counts, W410, field messages_in: 0; 0/steps/1 was sent 2",
        "in, W410, field messages_in: 3; 0/steps/1 was sent 2",
        "out, W410, field messages_out: 3; 2 came to 0/steps/1",
        "sink in, W410, field messages_in: 1; its inputs gave 2 to 0/sinks/0",
        "sink, W410, field messages_out: 1; the frames of 0/sinks/0 hold 2",
        "dead, W410, field dead_letters: 1; frames hold 0",
        "path, W410, field counts: evil",
    })
    void aCallThatBreaksARuleEndsTheQuery(String fault, String code, String text) {
        OperatorFailure failure = assertThrows(OperatorFailure.class, () -> answersOf(fault));
        assertTrue(failure.getMessage().startsWith(code), failure.getMessage());
        assertTrue(failure.getMessage().contains(text), failure.getMessage());
    }
}
