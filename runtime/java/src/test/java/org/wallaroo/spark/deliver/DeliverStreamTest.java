package org.wallaroo.spark.deliver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.wallaroo.spark.journal.JournalOffset;
import org.wallaroo.spark.message.Arrivals;
import org.wallaroo.spark.message.FramesTest;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.rpc.Channels;
import org.wallaroo.spark.rpc.Credentials;
import org.wallaroo.spark.rpc.FakeServer;
import wallaroo.service.v1.Service.DeliverReply;
import wallaroo.service.v1.Service.DeliverRequest;

@SuppressWarnings("try") // a server serves while it is open
class DeliverStreamTest {
    private static final Metadata.Key<byte[]> FAILURES =
            Metadata.Key.of("wallaroo-failures-bin", Metadata.BINARY_BYTE_MARSHALLER);

    private int servers;

    @TempDir
    Path directory;

    /** Delivers one frame to an egress with the given answers, and then calls {@code then}. */
    private void deliver(FakeServer.Stream<DeliverRequest, DeliverReply> answer, Consumer<DeliverStream> then)
            throws IOException {
        var service = ServerServiceDefinition.builder("wallaroo.service.v1.OutboxService");
        FakeServer.add(service, DeliverStream.DELIVER, () -> answer);
        Path socket = directory.resolve("egress" + servers++);
        try (FakeServer server = new FakeServer(socket, service)) {
            Settings settings = Settings.of(Json.object("egress", socket.toString(), "egress_epoch", 1));
            BarrierQueue queue = new BarrierQueue(new JournalOffset(1, 0, 0), 1);
            DeliverStream stream = new DeliverStream(settings, new Attempt("q", 0, 0, 0), 0, queue);
            stream.deliver(List.of(new JournalRow.Item(2, -1, 1, FramesTest.frame(2, 1, 0, new byte[2]))), Arrivals.NONE);
            then.accept(stream);
            stream.close();
        }
    }

    private static void reply(ServerCall<DeliverRequest, DeliverReply> call, long number) {
        call.sendMessage(DeliverReply.newBuilder().setNumber(number).build());
    }

    private static RuntimeException failureOf(DeliverStream stream) {
        return assertThrows(RuntimeException.class, stream::finish);
    }

    @Test
    void whatIsAcknowledgedIsDone() throws IOException {
        deliver((request, call) -> {
            if (request.hasDeliveries()) {
                reply(call, request.getDeliveries().getItems(0).getNumber());
            }
        }, DeliverStream::finish);
    }

    @Test
    void anAcknowledgementOfWhatWasNotSentIsRefused() throws IOException {
        deliver((request, call) -> reply(call, 7), stream -> {
            String message = failureOf(stream).getMessage();
            assertTrue(message.startsWith("I901"), message);
        });
    }

    @Test
    void anEgressThatEndsTheStreamEarlyIsAnError() throws IOException {
        deliver((request, call) -> {
            if (request.hasDeliveries()) {
                call.close(Status.OK, new Metadata());
            }
        }, stream -> {
            String message = failureOf(stream).getMessage();
            assertTrue(message.startsWith("R617 the egress ended unexpectedly; its stream ended: OK: null"), message);
            assertTrue(message.contains("look into its log logs/egress.log of the checkpoint"), message);
        });
    }

    @Test
    void aRefusalWithoutAReasonIsTold() throws IOException {
        for (byte[] packed : new byte[][] {{'[', ']'}, {1, 2, 3}}) {
            Metadata trailers = new Metadata();
            trailers.put(FAILURES, packed);
            deliver((request, call) -> {
                if (request.hasDeliveries()) {
                    call.close(Status.FAILED_PRECONDITION.withDescription("not this one"), trailers);
                }
            }, stream -> assertEquals("FAILED_PRECONDITION: not this one", failureOf(stream).getMessage()));
        }
    }

    @Test
    void aCommitAfterTheEndIsNoError() throws IOException {
        deliver((request, call) -> {
            if (request.hasDeliveries()) {
                reply(call, 1);
            }
        }, stream -> {
            stream.finish();
            stream.commit(7);
            stream.close();
            stream.commit(7);
        });
    }

    /** The engine reports the reason of its end later, so the closed stream must not report another one. */
    @Test
    void aStreamThatItsEngineClosesFailsNoTask() throws InterruptedException {
        String nobody = directory.resolve("nobody").toString();
        BarrierQueue queue = new BarrierQueue(new JournalOffset(1, 0, 0), 1);
        Settings settings = Settings.of(Json.object("egress", nobody, "egress_epoch", 1));
        new DeliverStream(settings, new Attempt("q", 0, 0, 0), 0, queue).close();
        assertNull(queue.next(1, TimeUnit.MILLISECONDS.toNanos(300)));
    }

    @Test
    @Timeout(20)
    void acknowledgementsGoOnForEver() throws IOException {
        deliver((request, call) -> {
            if (request.hasDeliveries()) {
                for (int i = 0; i < 3 * Channels.REPLIES; i++) {
                    reply(call, 0);
                }
                reply(call, 1);
            }
        }, DeliverStream::finish);
    }

    /** Delivers one frame to a remote egress, and returns the stream. */
    private static DeliverStream deliverTo(String address, String token) {
        Credentials.put(address, token, "");
        Settings settings = Settings.of(Json.object("egress", address, "egress_epoch", 1));
        BarrierQueue queue = new BarrierQueue(new JournalOffset(1, 0, 0), 1);
        DeliverStream stream = new DeliverStream(settings, new Attempt("q", 0, 0, 0), 0, queue);
        stream.deliver(List.of(new JournalRow.Item(2, -1, 1, FramesTest.frame(2, 1, 0, new byte[2]))), Arrivals.NONE);
        return stream;
    }

    private static FakeServer remote(int port, FakeServer.Stream<DeliverRequest, DeliverReply> answer) throws IOException {
        var service = ServerServiceDefinition.builder("wallaroo.service.v1.OutboxService");
        FakeServer.add(service, DeliverStream.DELIVER, () -> answer);
        return new FakeServer(port, "0123456789abcdef", service);
    }

    @Test
    @Timeout(60)
    void aRemoteEgressIsAwayOrRefuses() throws IOException {
        try (FakeServer server = remote(0, (request, call) -> {
            if (request.hasDeliveries()) {
                call.close(Status.UNAVAILABLE, new Metadata());
            }
        })) {
            String away = remoteFailure(server, "0123456789abcdef");
            assertTrue(away.startsWith("R642") && away.contains(server.address()), away);
            String refused = remoteFailure(server, "another-token-of-16");
            assertTrue(refused.startsWith("R641"), refused);
        }
    }

    /** Returns the failure of a delivery, which comes while it is sent, or when the stream finishes. */
    private static String remoteFailure(FakeServer server, String token) {
        return assertThrows(RuntimeException.class, () -> deliverTo(server.address(), token).finish()).getMessage();
    }

    /** If nobody serves at the port at first, the stream waits, and does not fail its task. */
    @Test
    @Timeout(60)
    void aRemoteEgressThatComesLateGetsAll() throws Exception {
        int port;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        DeliverStream stream = deliverTo("127.0.0.1:" + port, "0123456789abcdef");
        TimeUnit.MILLISECONDS.sleep(new Random(port).nextInt(3000)); // wherever in its pauses the channel is
        try (FakeServer server = remote(port, (request, call) -> {
            if (request.hasDeliveries()) {
                reply(call, 1);
            }
        })) {
            stream.finish();
        }
        stream.close();
    }
}
