package org.wallaroo.spark.rpc;

import com.fasterxml.jackson.databind.JsonNode;
import io.grpc.Metadata;
import io.grpc.Status;
import java.nio.charset.StandardCharsets;
import java.util.EnumSet;
import java.util.Set;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.OperatorFailure;

/** Makes the error with which a task fails because a service has ended a call. */
public final class ServiceFailure {
    private static final Metadata.Key<byte[]> FAILURES =
            Metadata.Key.of("wallaroo-failures-bin", Metadata.BINARY_BYTE_MARSHALLER);

    private static final Set<Status.Code> PASSING = EnumSet.of(Status.Code.OK, Status.Code.UNAVAILABLE,
            Status.Code.DEADLINE_EXCEEDED, Status.Code.CANCELLED, Status.Code.INTERNAL);

    private ServiceFailure() {}

    /**
     * Returns the error that the service has reported, or an error about the end of the call.
     *
     * @param kind gateway or egress
     * @param address of the service
     * @param error how the call ended
     */
    public static RuntimeException of(String kind, String address, ReplyQueue.StreamEnded error) {
        Status.Code code = error.status().getCode();
        byte[] packed = error.trailers().get(FAILURES);
        if (code == Status.Code.FAILED_PRECONDITION && packed != null) {
            return reported(packed, error);
        }
        if (!Channels.isRemote(address)) {
            return OperatorFailure.of("R617", "process", kind, "reason",
                    "its stream ended: " + error.getMessage(), "log", "logs/" + kind + ".log of the checkpoint");
        }
        if (code == Status.Code.UNAUTHENTICATED) {
            return OperatorFailure.of("R641", "service", kind, "address", address);
        }
        return OperatorFailure.of(PASSING.contains(code) ? "R642" : "R648", "service", kind, "address", address,
                "reason", error.getMessage());
    }

    /** Says whether the same call may succeed later. */
    static boolean isPassing(ReplyQueue.StreamEnded error) {
        return PASSING.contains(error.status().getCode()) && error.trailers().get(FAILURES) == null;
    }

    private static RuntimeException reported(byte[] packed, ReplyQueue.StreamEnded error) {
        try {
            JsonNode findings = Json.parse(new String(packed, StandardCharsets.UTF_8));
            return findings.isEmpty() ? error : OperatorFailure.found(findings);
        } catch (IllegalArgumentException damage) {
            error.addSuppressed(damage);
            return error;
        }
    }
}
