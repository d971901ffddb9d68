package org.wallaroo.spark.journal;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.FramesTest;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.rpc.Credentials;
import org.wallaroo.spark.rpc.FakeServer;
import wallaroo.service.v1.Service.Chunk;
import wallaroo.service.v1.Service.ReadRequest;

@SuppressWarnings("try") // a server serves while it is open
class JournalTailTest {
    private static final String TOKEN = "0123456789abcdef";
    private static final long JOURNAL = 0xabL;
    private static final JournalOffset START = new JournalOffset(JOURNAL, 0, 0);
    private static final AtomicInteger QUERIES = new AtomicInteger();
    private static final long WAIT_NS = TimeUnit.SECONDS.toNanos(30);

    @TempDir
    Path directory;

    /** Returns a gateway on TCP that sends the chunks of a test to clients with the token. */
    private static FakeServer gateway(FakeServer.Stream<ReadRequest, Chunk> answer) throws IOException {
        var service = ServerServiceDefinition.builder("wallaroo.service.v1.JournalService");
        FakeServer.add(service, JournalPull.READ, () -> answer);
        return new FakeServer(0, TOKEN, service);
    }

    private static Settings settings(FakeServer server, String token) {
        Credentials.put(server.address(), token, "");
        // A query's text is its own: the port of a server may be that of one before, whose head is closed for good.
        return Settings.of(Json.object(
                "gateway", server.address(), "gateway_epoch", 3, "journal", "", "row_bytes", QUERIES.incrementAndGet()));
    }

    /** Returns drawn frames of 1 to 3 messages. Some are larger than a row may be. */
    private static List<byte[]> drawn(Random random) {
        List<byte[]> frames = new ArrayList<>();
        long sequence = 0;
        for (int i = 1 + random.nextInt(60); i > 0; i--) {
            int count = 1 + random.nextInt(3);
            frames.add(FramesTest.frame(2, count, sequence, new byte[random.nextInt(random.nextInt(8) == 0 ? 9000 : 90)]));
            sequence += count;
        }
        return frames;
    }

    private JournalFiles files(byte[] content) throws IOException {
        ByteBuffer header = ByteBuffer.allocate(32).order(ByteOrder.LITTLE_ENDIAN);
        header.putInt(0, 0x31524a57).putLong(24, JOURNAL);
        ByteArrayOutputStream file = new ByteArrayOutputStream();
        file.writeBytes(header.array());
        file.writeBytes(content);
        Files.write(directory.resolve(String.format("%020d.journal", 0)), file.toByteArray());
        return new JournalFiles(directory, START);
    }

    /**
     * Sends frames from an offset on, in chunks of any size that the protocol allows. Sometimes it breaks the stream.
     */
    private static final class Sending implements FakeServer.Stream<ReadRequest, Chunk> {
        private final List<byte[]> frames;
        private final Random random;
        private int breaks;

        private Sending(List<byte[]> frames, Random random, int breaks) {
            this.frames = frames;
            this.random = random;
            this.breaks = breaks;
        }

        @Override
        public void accept(ReadRequest request, ServerCall<ReadRequest, Chunk> call) {
            accepts(request, call);
        }

        /** Returns whether all frames were sent, and the stream was not broken. */
        private boolean accepts(ReadRequest request, ServerCall<ReadRequest, Chunk> call) {
            long at = 0;
            ByteArrayOutputStream piece = new ByteArrayOutputStream();
            for (byte[] frame : frames) {
                if (at >= request.getStart()) {
                    piece.writeBytes(frame);
                }
                at += frame.length;
                if (random.nextInt(3) == 0 && !send(piece, call)) {
                    return false;
                }
            }
            return send(piece, call);
        }

        /** Sends whole frames in one chunk or in several. Returns whether the stream goes on. */
        private boolean send(ByteArrayOutputStream piece, ServerCall<ReadRequest, Chunk> call) {
            byte[] data = piece.toByteArray();
            piece.reset();
            int step = 1 + random.nextInt(random.nextBoolean() ? 10_000 : 100);
            for (int begin = 0; begin < data.length; begin += step) {
                int end = Math.min(data.length, begin + step);
                if (breaks > 0 && random.nextInt(20) == 0) {
                    breaks--;
                    call.close(Status.UNAVAILABLE, new Metadata());
                    return false;
                }
                call.sendMessage(Chunk.newBuilder().setData(ByteString.copyFrom(data, begin, end - begin))
                        .setIsContinued(end < data.length).build());
            }
            return true;
        }
    }

    @Test
    @Timeout(120)
    void rowsAreThoseOfFilesHoweverTheGatewayCutsThem() throws Exception {
        for (int seed = 0; seed < 40; seed++) {
            Random random = new Random(seed);
            List<byte[]> frames = drawn(random);
            try (FakeServer server = gateway(new Sending(frames, random, random.nextInt(4)))) {
                Settings settings = settings(server, TOKEN);
                JournalHead head = JournalHead.of(settings, START);
                try (JournalReader sent = JournalReader.of(settings, START, head);
                        JournalFiles files = files(Frames.joined(frames))) {
                    compare(files, sent, head, frames, new Random(seed));
                } finally {
                    JournalHead.close(settings);
                }
            }
        }
    }

    @Test
    @Timeout(120)
    void aPartIsThatOfFilesHoweverTheGatewayCutsIt() throws Exception {
        for (int seed = 0; seed < 40; seed++) {
            Random random = new Random(seed);
            List<byte[]> frames = drawn(random);
            long end = Frames.joined(frames).length;
            Sending sending = new Sending(frames, random, random.nextInt(4));
            try (FakeServer server = gateway((request, call) -> {
                if (sending.accepts(request, call)) {
                    call.close(Status.OK, new Metadata());
                }
            })) {
                settings(server, TOKEN);
                JournalService service = new JournalService(server.address(), 3);
                try (JournalRange sent = service.range(START, end, 1000); JournalFiles files = files(Frames.joined(frames))) {
                    ByteArrayOutputStream all = new ByteArrayOutputStream();
                    JournalRow.Place place = null;
                    while (sent.hasNext()) {
                        JournalRow row = sent.next();
                        row.items().forEach(item -> all.writeBytes(item.frame()));
                        place = row.place();
                    }
                    assertArrayEquals(files.read(end, (int) end), all.toByteArray());
                    assertEquals(files.place(), place);
                }
            }
        }
    }

    private static void compare(JournalReader files, JournalReader sent, JournalHead head, List<byte[]> frames, Random random)
            throws Exception {
        long end = 0;
        int number = 0;
        while (number < frames.size()) {
            for (int i = random.nextInt(9); i >= 0 && number < frames.size(); i--) {
                end += frames.get(number++).length;
            }
            assertTrue(head.await(end - 1, WAIT_NS) >= end);
            int most = 40 + random.nextInt(3000);
            byte[] expected;
            while ((expected = files.read(end, most)) != null) {
                assertArrayEquals(expected, sent.read(end, most));
                assertEquals(files.place(), sent.place());
            }
            assertNull(sent.read(end, most));
        }
    }

    @Test
    @Timeout(60)
    void readingGoesOnWhereAnotherReaderBegins() throws Exception {
        List<byte[]> frames = List.of(FramesTest.frame(2, 1, 0, new byte[5]), FramesTest.frame(2, 1, 1, new byte[7]));
        int first = frames.get(0).length;
        try (FakeServer server = gateway(new Sending(frames, new Random(1), 0))) {
            Settings settings = settings(server, TOKEN);
            JournalHead head = JournalHead.of(settings, START);
            try (JournalReader before = JournalReader.of(settings, START, head)) {
                assertEquals(first + frames.get(1).length, head.await(first, WAIT_NS));
            }
            JournalOffset place = new JournalOffset(JOURNAL, first, 1);
            try (JournalReader again = JournalReader.of(settings, place, head)) {
                assertEquals(first + frames.get(1).length, head.await(first, WAIT_NS));
                assertArrayEquals(frames.get(1), again.read(Long.MAX_VALUE, 1000));
                assertEquals(new JournalRow.Place(first + frames.get(1).length, 2, 2), again.place());
            } finally {
                JournalHead.close(settings);
            }
        }
    }

    /** A gateway sends only requested chunks, so that a slow engine holds few of them in memory. */
    @Test
    @Timeout(60)
    void readingAheadHasALimit() throws Exception {
        AtomicInteger sent = new AtomicInteger();
        byte[] frame = FramesTest.frame(2, 1, 0, new byte[10]);
        try (FakeServer server = gateway((request, call) -> {
            for (int i = 0; i < 1000; i++) {
                call.sendMessage(Chunk.newBuilder().setData(ByteString.copyFrom(FramesTest.frame(2, 1, i, new byte[10]))).build());
                sent.incrementAndGet();
            }
        })) {
            Settings settings = settings(server, TOKEN);
            JournalHead head = JournalHead.of(settings, START);
            try (JournalReader reader = JournalReader.of(settings, START, head)) {
                long ahead = head.await(16 * frame.length - 1, WAIT_NS);
                assertEquals(16 * frame.length, ahead);
                for (int i = 0; i < 1000; i++) {
                    long end = (long) (i + 1) * frame.length;
                    assertTrue(head.await(end - 1, WAIT_NS) >= end, "message " + i);
                    assertEquals(frame.length, reader.read(end, 1).length);
                }
            } finally {
                JournalHead.close(settings);
            }
        }
    }

    private void fails(String code, String token, FakeServer.Stream<ReadRequest, Chunk> answer) throws Exception {
        try (FakeServer server = gateway(answer)) {
            Settings settings = settings(server, token);
            try (JournalRange part = new JournalService(server.address(), 3).range(START, 1000, 1000)) {
                OperatorFailure failure = assertThrows(OperatorFailure.class, part::next);
                assertTrue(failure.getMessage().startsWith(code), failure.getMessage());
            }
            JournalHead head = JournalHead.of(settings, START);
            try (JournalReader reader = JournalReader.of(settings, START, head)) {
                OperatorFailure failure = assertThrows(OperatorFailure.class, () -> {
                    head.await(0, WAIT_NS);
                    reader.read(1000, 1000);
                });
                assertTrue(failure.getMessage().startsWith(code), failure.getMessage());
            } finally {
                JournalHead.close(settings);
            }
        }
    }

    @Test
    @Timeout(60)
    void whatAGatewayRefusesHasItsCode() throws Exception {
        fails("R641", "another-token-of-16", (request, call) -> { });
        Metadata trailers = new Metadata();
        trailers.put(Metadata.Key.of("wallaroo-failures-bin", Metadata.BINARY_BYTE_MARSHALLER),
                "[{\"code\": \"R644\", \"message\": \"its text\"}]".getBytes(StandardCharsets.UTF_8));
        fails("R644", TOKEN, (request, call) -> call.close(Status.FAILED_PRECONDITION, trailers));
        fails("R648", TOKEN, (request, call) -> call.close(Status.UNIMPLEMENTED, new Metadata()));
        byte[] frame = FramesTest.frame(2, 1, 0, new byte[5]);
        frame[44] = 1;
        for (byte[] data : new byte[][] {frame, {}, {1, 2, 3}}) {
            fails("R648", TOKEN, (request, call) ->
                    call.sendMessage(Chunk.newBuilder().setData(ByteString.copyFrom(data)).build()));
        }
    }
}
