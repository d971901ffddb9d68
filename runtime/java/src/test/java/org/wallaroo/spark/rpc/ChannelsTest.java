package org.wallaroo.spark.rpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.Empty;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Status;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.channels.ClosedChannelException;
import org.junit.jupiter.api.Test;

class ChannelsTest {
    @Test
    void aClosedChannelIsALostConnectionAndAnErrorOfAWorkerIsNot() {
        Status closed = Status.UNKNOWN.withDescription("channel closed").withCause(new ClosedChannelException());
        assertEquals(Status.Code.UNAVAILABLE, Channels.named(closed).getCode());
        Status said = Status.UNKNOWN.withDescription("Exception calling application");
        assertEquals(said, Channels.named(said));
    }

    @Test
    void aServiceThatCannotBeReachedHasItsReason() throws IOException {
        String address;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            address = "127.0.0.1:" + free.getLocalPort();
        }
        Credentials.put(address, "0123456789abcdef", "");
        ManagedChannel channel = Channels.service(address);
        var call = new ReplyQueue<>(channel, Channels.method("s/M", MethodType.UNARY, Empty.parser(), Empty.parser()));
        call.send(Empty.getDefaultInstance());
        var ended = assertThrows(ReplyQueue.StreamEnded.class, () -> call.poll(60_000));
        assertTrue(ServiceFailure.of("gateway", address, ended).getMessage().contains("Connection refused"), ended.getMessage());
        channel.shutdownNow();
    }
}
