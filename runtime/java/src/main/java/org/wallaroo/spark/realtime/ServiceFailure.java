package org.wallaroo.spark.realtime;

import com.google.protobuf.InvalidProtocolBufferException;
import io.grpc.Metadata;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import wallaroo.service.v1.Service.Failure;
import wallaroo.service.v1.Service.Failures;

/** Reads why a service has refused a call. */
final class ServiceFailure {
    private static final Metadata.Key<byte[]> FAILURES =
            Metadata.Key.of("wallaroo-failures-bin", Metadata.BINARY_BYTE_MARSHALLER);

    private ServiceFailure() {}

    static RuntimeException of(ReplyQueue.StreamEnded error) {
        byte[] packed = error.trailers().get(FAILURES);
        if (packed == null) {
            return error;
        }
        try {
            List<Map<String, Object>> findings = new ArrayList<>();
            for (Failure failure : Failures.parseFrom(packed).getFailuresList()) {
                findings.add(Map.of("code", failure.getCode(), "message", failure.getMessage(), "fix", failure.getFix()));
            }
            return findings.isEmpty() ? error : OperatorFailure.found(Json.parse(Json.write(findings)));
        } catch (InvalidProtocolBufferException damage) {
            error.addSuppressed(damage);
            return error;
        }
    }
}
