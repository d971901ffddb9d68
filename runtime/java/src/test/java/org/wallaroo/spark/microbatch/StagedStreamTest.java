package org.wallaroo.spark.microbatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.wallaroo.spark.message.FramesTest;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.rpc.Credentials;
import org.wallaroo.spark.rpc.FakeServer;
import wallaroo.service.v1.Service.StageReply;
import wallaroo.service.v1.Service.StageRequest;
import wallaroo.service.v1.Service.StagedFile;
import wallaroo.service.v1.Service.StatusReply;

@SuppressWarnings("try") // a server serves while it is open
class StagedStreamTest {
    private static final String TOKEN = "0123456789abcdef";
    private static final int FRAME_BYTES = 600_000; // each is sent at once
    private static final Attempt ATTEMPT = new Attempt("q", 4, 0, 7);

    /** Returns an egress that takes only so many requests of a stream before it has processed some. */
    private static FakeServer egress(int requests, FakeServer.Stream<StageRequest, StageReply> answer) throws IOException {
        var service = ServerServiceDefinition.builder("wallaroo.service.v1.OutboxService");
        FakeServer.add(service, StagedStream.STAGE, requests, () -> answer);
        FakeServer.add(service, StagedStream.STATUS, () -> (request, call) -> {
            call.sendMessage(StatusReply.getDefaultInstance());
            call.close(Status.OK, new Metadata());
        });
        FakeServer server = new FakeServer(0, TOKEN, service);
        Credentials.put(server.address(), TOKEN, "");
        return server;
    }

    /** Writes frames until the stream fails. Returns the number of written frames, and the failure. */
    private static Map.Entry<Integer, OperatorFailure> write(FakeServer server, int frames, long takeMs) {
        StagedStream staging = new StagedStream(server.address(), 1, ATTEMPT, takeMs);
        List<Integer> written = new ArrayList<>();
        OperatorFailure failure = assertThrows(OperatorFailure.class, () -> {
            for (int i = 0; i < frames; i++) {
                staging.write(2, FramesTest.frame(2, 1, i, new byte[FRAME_BYTES]));
                written.add(i);
            }
        });
        staging.abort();
        return Map.entry(written.size(), failure);
    }

    @Test
    void theLocaleMakesNoDifferenceToNamesOfFiles() {
        Locale before = Locale.getDefault();
        Locale.setDefault(Locale.forLanguageTag("fa-IR"));
        try {
            assertEquals("q-4-0-7-2.frames", Staging.name(ATTEMPT, 2));
        } finally {
            Locale.setDefault(before);
        }
    }

    @Test
    @Timeout(60)
    void anEgressThatTakesNothingLetsTheTaskHoldLittle() throws IOException {
        try (FakeServer server = egress(1, (request, call) -> { })) {
            var ended = write(server, 200, 500);
            assertTrue(ended.getValue().getMessage().startsWith("R642"), ended.getValue().getMessage());
            assertTrue(ended.getValue().getMessage().contains("it took nothing for"), ended.getValue().getMessage());
            assertTrue(ended.getKey() * FRAME_BYTES <= 4 << 20, () -> ended.getKey() + " frames were taken"); // 1 MiB on the way
        }
    }

    @Test
    @Timeout(60)
    void whatTheEgressRefusesIsKnownBeforeAllIsSent() throws IOException {
        Metadata trailers = new Metadata();
        trailers.put(Metadata.Key.of("wallaroo-failures-bin", Metadata.BINARY_BYTE_MARSHALLER),
                "[{\"code\": \"R644\", \"message\": \"its text\"}]".getBytes(StandardCharsets.UTF_8));
        try (FakeServer server = egress(1, (request, call) -> call.close(Status.FAILED_PRECONDITION, trailers))) {
            var ended = write(server, 200, TimeUnit.MINUTES.toMillis(5));
            assertTrue(ended.getValue().getMessage().startsWith("R644"), ended.getValue().getMessage());
        }
    }

    /** Takes requests slowly, and answers with counts and checksums of the received frames. */
    private static final class Slow implements FakeServer.Stream<StageRequest, StageReply> {
        private final ScheduledExecutorService clock;
        private final Random random;
        private final int mostMs;
        private final Map<Integer, CRC32> sums = new TreeMap<>();
        private final Map<Integer, Long> bytes = new TreeMap<>();

        private Slow(ScheduledExecutorService clock, Random random, int mostMs) {
            this.clock = clock;
            this.random = random;
            this.mostMs = mostMs;
        }

        @Override
        public void accept(StageRequest request, ServerCall<StageRequest, StageReply> call) {
            if (request.getIsLast()) {
                StageReply.Builder reply = StageReply.newBuilder();
                sums.forEach((port, sum) -> reply.addFiles(StagedFile.newBuilder().setPort(port).setBytes(bytes.get(port))
                        .setCrc32((int) sum.getValue()).setMessages(bytes.get(port) / (FRAME_BYTES + 40))));
                call.sendMessage(reply.build());
                call.close(Status.OK, new Metadata());
                return;
            }
            if (request.hasChunk()) {
                byte[] data = request.getChunk().getData().toByteArray();
                sums.computeIfAbsent(request.getPort(), port -> new CRC32()).update(data);
                bytes.merge(request.getPort(), (long) data.length, Long::sum);
            }
            clock.schedule(() -> call.request(1), random.nextInt(mostMs), TimeUnit.MILLISECONDS);
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2})
    @Timeout(60)
    void aSlowEgressGetsAllOfIt(long seed) throws IOException {
        Random random = new Random(seed);
        ScheduledExecutorService clock = Executors.newSingleThreadScheduledExecutor();
        long takeMs = 2000;
        try (FakeServer server = egress(1, new Slow(clock, random, 100))) {
            StagedStream staging = new StagedStream(server.address(), 1, ATTEMPT, takeMs);
            long begun = System.nanoTime();
            long[] messages = new long[4];
            for (int i = 0; i < 60; i++) {
                int port = random.nextInt(4);
                messages[port]++;
                staging.write(port, FramesTest.frame(port, 1, i, new byte[FRAME_BYTES]));
            }
            List<String> files = staging.finish();
            assertTrue(System.nanoTime() - begun > takeMs * 1_000_000, "it was not slow");
            assertEquals(4, files.size());
            for (int port = 0; port < 4; port++) {
                assertTrue(files.get(port).contains("\"bytes\":" + messages[port] * (FRAME_BYTES + 40)), files.get(port));
            }
        } finally {
            clock.shutdownNow();
        }
    }
}
