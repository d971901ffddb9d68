package org.wallaroo.spark.rpc;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.grpc.Status;
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
}
