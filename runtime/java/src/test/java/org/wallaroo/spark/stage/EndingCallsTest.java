package org.wallaroo.spark.stage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.ServerCall;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.wallaroo.spark.bucket.PlainStore;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.FramesTest;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.StageSettings;
import org.wallaroo.spark.rpc.FakeServer;
import org.wallaroo.spark.worker.FakeWorker;
import org.wallaroo.spark.worker.WorkerChannel;
import wallaroo.worker.v1.WorkerOuterClass.Bucket;
import wallaroo.worker.v1.WorkerOuterClass.Failure;
import wallaroo.worker.v1.WorkerOuterClass.Node;
import wallaroo.worker.v1.WorkerOuterClass.NodeKind;
import wallaroo.worker.v1.WorkerOuterClass.Opening;
import wallaroo.worker.v1.WorkerOuterClass.Output;
import wallaroo.worker.v1.WorkerOuterClass.Done;
import wallaroo.worker.v1.WorkerOuterClass.Reply;
import wallaroo.worker.v1.WorkerOuterClass.Request;
import wallaroo.worker.v1.WorkerOuterClass.StepCount;

/** Makes calls of drawn buckets that end at once, as in micro-batches, and compares the order of their outputs. */
class EndingCallsTest {
    private static final String STEP = "0/steps/1";
    private static final String SINK = "0/sinks/0";
    private static final Opening OPENING = Opening.newBuilder()
            .setStage(FakeWorker.stage("s1")
                    .addNodes(Node.newBuilder().setPath(STEP).setPort(1).setStatePort(1)
                            .setKind(NodeKind.NODE_KIND_STATE_COMPUTATION))
                    .addNodes(Node.newBuilder().setPath(SINK).setPort(2).addInputs(STEP)
                            .setKind(NodeKind.NODE_KIND_SINK)))
            .build();

    @TempDir
    Path directory;

    private final Set<ServerCall<?, ?>> streams = ConcurrentHashMap.newKeySet();
    private final AtomicInteger most = new AtomicInteger(); // streams at once
    private final PlainStore store = new PlainStore();
    private final List<Integer> bytes = new CopyOnWriteArrayList<>(); // of requests

    private static StepCount count(String path, long in, long out) {
        return StepCount.newBuilder().setPath(path).setMessagesIn(in).setMessagesOut(out).build();
    }

    /** Returns the output that {@link Echo} makes from a frame. */
    private static byte[] result(byte[] frame) {
        long sequence = ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN).getLong(16);
        byte[] body = Arrays.copyOfRange(frame, Frames.HEADER_BYTES, frame.length);
        return FramesTest.frame(2, (int) Frames.count(frame, 0), sequence, body);
    }

    /** Returns each frame of a call as output. Some calls fail until they are repeated carefully. */
    private final class Echo implements FakeServer.Stream<Request, Reply> {
        private final Set<Integer> failing;
        private final List<byte[]> frames = new ArrayList<>();

        private Echo(Set<Integer> failing) {
            this.failing = failing;
        }

        @Override
        public void accept(Request request, ServerCall<Request, Reply> call) {
            streams.add(call);
            streams.removeIf(ServerCall::isCancelled);
            most.accumulateAndGet(streams.size(), Math::max);
            bytes.add(request.getSerializedSize());
            if (!request.hasBucket()) {
                return;
            }
            Bucket bucket = request.getBucket();
            byte[] part = bucket.getFrames().toByteArray();
            for (int at = 0; at < part.length; at += Frames.bytes(part, at)) {
                frames.add(Arrays.copyOfRange(part, at, at + Frames.bytes(part, at)));
            }
            if (bucket.getMore()) {
                return;
            }
            if (failing.contains(bucket.getBucket()) && !bucket.getCareful()) {
                call.sendMessage(Reply.newBuilder().setFailure(Failure.newBuilder().setCode("C511")).build());
                return;
            }
            frames.forEach(frame -> call.sendMessage(Reply.newBuilder()
                    .setOutput(Output.newBuilder().setIndex(bucket.getIndex()).setPort(2).setBucket(-1)
                            .setFrame(FakeWorker.bytes(result(frame))))
                    .build()));
            long messages = frames.stream().mapToLong(frame -> Frames.count(frame, 0)).sum();
            call.sendMessage(Reply.newBuilder()
                    .setDone(Done.newBuilder().setIndex(bucket.getIndex()).setNonce(9)
                            .addCounts(count(STEP, messages, messages)).addCounts(count(SINK, messages, messages)))
                    .build());
        }
    }

    private static List<JournalRow.Item> drawn(Random random, int buckets) {
        List<JournalRow.Item> items = new ArrayList<>();
        for (int bucket = 0; bucket < buckets; bucket++) {
            for (int count = random.nextInt(4); count >= 0; count--) {
                byte[] frame = FramesTest.frame(1, 1 + random.nextInt(3), random.nextInt(1000), new byte[random.nextInt(50)]);
                items.add(new JournalRow.Item(1, bucket, random.nextInt(-1, 3), frame));
            }
        }
        Collections.shuffle(items, random);
        return items;
    }

    private BucketCalls calls(FakeWorker worker) {
        StageSettings settings = worker.settings();
        return new BucketCalls(new WorkerChannel(settings), OPENING, store, settings, AccountTest.empty(), true);
    }

    private static String text(int bucket, byte[] frame) {
        return bucket + " " + Arrays.toString(frame);
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
    void aFewAreOpenAndEachIsStoredBeforeTheNextOneGivesAnything(long seed) throws IOException {
        Random random = new Random(seed);
        int buckets = 1 + random.nextInt(60);
        List<JournalRow.Item> items = drawn(random, buckets);
        Set<Integer> failing = ConcurrentHashMap.newKeySet();
        IntStream.range(0, buckets).filter(bucket -> random.nextInt(20) == 0).forEach(failing::add);
        List<JournalRow.Item> sorted = new ArrayList<>(items);
        sorted.sort(Comparator.comparingInt(JournalRow.Item::origin));
        Set<Integer> order = new LinkedHashSet<>();
        sorted.forEach(item -> order.add(item.bucket()));
        List<String> expected = new ArrayList<>();
        order.forEach(bucket -> sorted.stream().filter(item -> item.bucket() == bucket)
                .forEach(item -> expected.add(text(bucket, result(item.frame())))));

        List<String> found = new ArrayList<>();
        try (FakeWorker worker = new FakeWorker(directory, () -> null, () -> new Echo(failing))) {
            BucketCalls calls = calls(worker);
            Iterator<List<JournalRow.Item>> steps = calls.run(items);
            List<Integer> given = new ArrayList<>();
            while (steps.hasNext()) {
                List<JournalRow.Item> step = steps.next();
                given.add(step.get(0).origin());
                step.forEach(item -> found.add(text(item.origin(), item.frame())));
                assertEquals(given, store.stored());
            }
            assertTrue(calls.isIdle());
            assertEquals(List.of(), flights(), "streams of calls that are done are open");
            calls.close();
        }
        assertEquals(expected, found);
        assertTrue(most.get() <= BucketCalls.OPEN_CALLS, () -> most + " streams at once");
    }

    private List<String> flights() throws IOException {
        try (var files = Files.list(directory)) {
            return files.map(Path::toString).filter(file -> file.contains("flight-")).toList();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {4, BucketCalls.OPEN_CALLS})
    void aFewBucketsRunSideBySide(int buckets) throws IOException {
        CopyOnWriteArrayList<Runnable> waiting = new CopyOnWriteArrayList<>();
        FakeServer.Stream<Request, Reply> all = (request, call) -> {
            Bucket bucket = request.getBucket();
            if (!request.hasBucket() || bucket.getMore()) {
                return;
            }
            waiting.add(() -> call.sendMessage(Reply.newBuilder()
                    .setDone(Done.newBuilder().setIndex(bucket.getIndex()).setNonce(9)
                            .addCounts(count(STEP, 1, 0)).addCounts(count(SINK, 0, 0)))
                    .build()));
            if (waiting.size() == buckets) {
                waiting.forEach(Runnable::run);
            }
        };
        try (FakeWorker worker = new FakeWorker(directory, () -> null, () -> all)) {
            List<JournalRow.Item> items = IntStream.range(0, buckets)
                    .mapToObj(bucket -> new JournalRow.Item(1, bucket, -1, FramesTest.frame(1, 1, 0, new byte[3])))
                    .toList();
            calls(worker).run(items).forEachRemaining(step -> assertEquals(List.of(), step));
        }
        assertEquals(buckets, store.stored().size());
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 40})
    void framesOfABucketGoInRequestsThatServersTake(int frames) throws IOException {
        List<JournalRow.Item> items = IntStream.range(0, frames)
                .mapToObj(number -> new JournalRow.Item(1, 3, -1, FramesTest.frame(1, 1, number, new byte[1 << 20])))
                .toList();
        List<JournalRow.Item> given = new ArrayList<>();
        try (FakeWorker worker = new FakeWorker(directory, () -> null, () -> new Echo(Set.of()))) {
            calls(worker).run(items).forEachRemaining(given::addAll);
        }
        assertEquals(frames, given.size());
        bytes.forEach(size -> assertTrue(size < 9 << 20, () -> size + " bytes"));
    }
}
