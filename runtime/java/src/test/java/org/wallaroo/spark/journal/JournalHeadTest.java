package org.wallaroo.spark.journal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.Metadata;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.rpc.FakeServer;
import wallaroo.service.v1.Service.Position;
import wallaroo.service.v1.Service.ReadRequest;

@SuppressWarnings("try") // a server serves while it is open
class JournalHeadTest {
    private static final JournalOffset START = new JournalOffset(1, 0, 0);

    @TempDir
    Path directory;

    private Settings settings() {
        String gateway = directory.resolve("gateway.sock").toString();
        return Settings.of(Json.object("gateway", gateway, "gateway_epoch", 1, "journal", directory.toString()));
    }

    private JournalHead follow() {
        return JournalHead.of(settings(), START);
    }

    private FakeServer gateway(FakeServer.Stream<ReadRequest, Position> answer) throws Exception {
        var service = ServerServiceDefinition.builder("wallaroo.service.v1.JournalService");
        FakeServer.add(service, JournalHead.FOLLOW, () -> answer);
        return new FakeServer(directory.resolve("gateway.sock"), service);
    }

    @Test
    @Timeout(60)
    void aGatewayThatFailsEachTimeIsAnError() throws Exception {
        try (FakeServer server = gateway((request, call) ->
                call.close(Status.UNKNOWN.withDescription("the disk failed"), new Metadata()))) {
            JournalHead head = follow();
            OperatorFailure failure =
                    assertThrows(OperatorFailure.class, () -> head.await(0, TimeUnit.SECONDS.toNanos(20)));
            assertTrue(failure.getMessage().startsWith("R617"), failure.getMessage());
            assertTrue(failure.getMessage().contains("UNKNOWN: the disk failed"), failure.getMessage());
        } finally {
            JournalHead.close(settings());
        }
    }

    @Test
    @Timeout(60)
    void anEngineThatBeginsTooLateFollowsNothing() throws Exception {
        AtomicInteger calls = new AtomicInteger();
        try (FakeServer server = gateway((request, call) -> {
            calls.incrementAndGet();
            call.sendMessage(Position.newBuilder().setOffset(90).build());
        })) {
            assertEquals(90, follow().await(0, TimeUnit.SECONDS.toNanos(20)));
            JournalHead.close(settings());
            assertThrows(IllegalStateException.class, () -> follow().await(90, TimeUnit.SECONDS.toNanos(20)));
            assertEquals(1, calls.get());
        } finally {
            JournalHead.close(settings());
        }
    }

    @Test
    @Timeout(60)
    void theTimeOfEachMoveIsKnownButOfTheFirst() throws Exception {
        long begun = System.currentTimeMillis();
        try (FakeServer server = gateway((request, call) -> List.of(0, 40, 90).forEach(
                offset -> call.sendMessage(Position.newBuilder().setOffset(offset).build())))) {
            JournalHead head = follow();
            assertEquals(40, Math.min(40, head.await(0, TimeUnit.SECONDS.toNanos(20))));
            assertEquals(90, head.await(40, TimeUnit.SECONDS.toNanos(20)));
            List<Long> found = LongStream.of(0, 1, 40, 41, 91)
                    .map(offset -> JournalHead.readableMs(settings().text(), offset)).boxed().toList();
            assertEquals(List.of(0L, 0L), List.of(found.get(0), found.get(4)));
            assertTrue(begun <= found.get(1) && found.get(1) <= found.get(3), found.toString());
            assertEquals(found.get(1), found.get(2));
        } finally {
            JournalHead.close(settings());
        }
    }

    @Test
    @Timeout(60)
    void aGatewayThatIsAwayIsAskedAgain() throws Exception {
        AtomicInteger calls = new AtomicInteger();
        try (FakeServer server = gateway((request, call) -> {
            if (calls.incrementAndGet() > 2) {
                call.sendMessage(Position.newBuilder().setOffset(90).build());
                return;
            }
            call.close(Status.UNAVAILABLE, new Metadata());
        })) {
            assertEquals(90, follow().await(0, TimeUnit.SECONDS.toNanos(20)));
        } finally {
            JournalHead.close(settings());
        }
    }
}
