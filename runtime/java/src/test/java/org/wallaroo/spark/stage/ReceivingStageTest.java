package org.wallaroo.spark.stage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.FramesTest;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.StageSettings;
import org.wallaroo.spark.rpc.FakeServer;
import org.wallaroo.spark.worker.FakeWorker;
import wallaroo.worker.v1.WorkerOuterClass.Data;
import wallaroo.worker.v1.WorkerOuterClass.Done;
import wallaroo.worker.v1.WorkerOuterClass.Node;
import wallaroo.worker.v1.WorkerOuterClass.NodeKind;
import wallaroo.worker.v1.WorkerOuterClass.Opening;
import wallaroo.worker.v1.WorkerOuterClass.Output;
import wallaroo.worker.v1.WorkerOuterClass.Reply;
import wallaroo.worker.v1.WorkerOuterClass.Request;
import wallaroo.worker.v1.WorkerOuterClass.StepCount;

class ReceivingStageTest {
    private static final int BUCKETS = 4;
    private static final String STEP = "0/steps/1";
    private static final String SINK = "0/sinks/0";

    /**
     * Two stages may send by one port, e.g. after a merge. Their results are in no common order, so they need two
     * origins.
     */
    @ParameterizedTest
    @CsvSource({"0, 1", "1, 1", "2, 3", "5, 2"})
    void whatComesFromEachStageByEachEntryHasANumberOfItsOwn(int block, int entries) {
        int end = block + entries * (block + 1);
        Set<Integer> numbers = new HashSet<>();
        for (int entry = 0; entry < entries; entry++) {
            for (int from = -1; from < block * BUCKETS; from++) {
                int number = ReceivingStage.origin(block, entry, BUCKETS, from);
                assertTrue(block * BUCKETS <= number && number < end * BUCKETS, () -> number + " is of another stage");
                numbers.add(number);
            }
        }
        assertEquals(entries * (block * BUCKETS + 1), numbers.size());
    }

    /** A server takes requests of at most 65 MiB. */
    @ParameterizedTest
    @CsvSource({"1, 1", "70, 1", "20, 3", "3, 40"})
    void muchOfOneOriginGoesInSeveralRequests(int frames, int origins, @TempDir Path directory) throws IOException {
        List<Integer> sizes = new CopyOnWriteArrayList<>();
        FakeServer.Stream<Request, Reply> answers = (request, call) -> {
            sizes.add(request.getSerializedSize());
            if (!request.hasData()) {
                return;
            }
            Data data = request.getData();
            byte[] came = data.getFrames().toByteArray();
            long messages = Frames.countByPort(came).get(1);
            byte[] first = FramesTest.frame(2, (int) messages, sequence(came), new byte[3]);
            call.sendMessage(Reply.newBuilder()
                    .setOutput(Output.newBuilder().setIndex(data.getIndex()).setPort(2).setBucket(-1).setFrame(FakeWorker.bytes(first)))
                    .build());
            call.sendMessage(Reply.newBuilder()
                    .setDone(Done.newBuilder().setIndex(data.getIndex())
                            .addCounts(count(STEP, messages)).addCounts(count(SINK, messages)))
                    .build());
        };
        List<String> found = new ArrayList<>();
        try (FakeWorker worker = new FakeWorker(directory, () -> answers, () -> null)) {
            ReceivingStage stage = new ReceivingStage(
                    settings(worker), new Attempt("", 0, 0, 0), AccountTest.empty());
            List<JournalRow.Item> items = new ArrayList<>();
            for (int number = 0; number < frames; number++) {
                for (int origin = origins - 1; origin >= 0; origin--) {
                    items.add(new JournalRow.Item(1, 0, origin, FramesTest.frame(1, 1, number, new byte[1 << 20])));
                }
            }
            stage.run(items).forEachRemaining(step -> step.forEach(item -> {
                found.add(item.origin() + " " + sequence(item.frame()) + " " + Frames.count(item.frame(), 0));
            }));
            stage.close();
        }
        List<String> expected = new ArrayList<>();
        int most = (8 << 20) / ((1 << 20) + Frames.HEADER_BYTES);
        for (int origin = 0; origin < origins; origin++) {
            for (int number = 0; number < frames; number += most) {
                int place = ReceivingStage.origin(40, 0, BUCKETS, origin);
                expected.add(place + " " + number + " " + Math.min(most, frames - number));
            }
        }
        assertEquals(expected, found);
        sizes.forEach(size -> assertTrue(size < 9 << 20, () -> size + " bytes"));
    }

    private static long sequence(byte[] frame) {
        return ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN).getLong(16);
    }

    private static StepCount count(String path, long messages) {
        return StepCount.newBuilder().setPath(path).setMessagesIn(messages).setMessagesOut(messages).build();
    }

    private static StageSettings settings(FakeWorker worker) {
        Opening opening = Opening.newBuilder()
                .setStage(FakeWorker.stage("s1")
                        .addNodes(Node.newBuilder().setPath(STEP).setPort(1).setKind(NodeKind.NODE_KIND_RECEIVE))
                        .addNodes(Node.newBuilder().setPath(SINK).setPort(2).addInputs(STEP)
                                .setKind(NodeKind.NODE_KIND_SINK)))
                .build();
        return Json.read(Json.parse(Json.object("worker", "main", "worker_directory", worker.settings().workerDirectory(), "init", "",
                "deadline_ms", 20_000, "entries", List.of(1), "block", 40,
                "opening", Base64.getEncoder().encodeToString(opening.toByteArray()))), StageSettings.class);
    }
}
