package org.wallaroo.spark.worker;

import io.grpc.Metadata;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import wallaroo.worker.v1.WorkerOuterClass.Opening;

/**
 * Writes the id of a stage's tracing span into the metadata of its calls, in the form of W3C's Trace Context.
 *
 * <p>The driver reports the span, and computes the same ids by the rules of {@code wallaroo.worker.host.trace}.
 */
final class TraceParent {
    private static final Metadata.Key<String> HEADER =
            Metadata.Key.of("traceparent", Metadata.ASCII_STRING_MARSHALLER);
    private static final HexFormat HEX = HexFormat.of();

    private TraceParent() {}

    /**
     * Returns the metadata of a stream.
     *
     * @param opening of the stream; a stream without a query is not traced
     * @param sampledBelow a trace is reported if the last 8 bytes of its id are below this; 0 for none, -1 for all
     */
    static Metadata of(Opening opening, long sampledBelow) {
        Metadata metadata = new Metadata();
        if (sampledBelow != 0 && !opening.getQuery().isEmpty()) {
            byte[] batch = sha256(opening.getQuery() + "/" + opening.getBatch());
            byte[] stage = sha256(String.join("/", opening.getQuery(), String.valueOf(opening.getBatch()),
                    opening.getStage().getId(), String.valueOf(opening.getAttempt())));
            boolean isSampled = Long.compareUnsigned(ByteBuffer.wrap(batch, 8, 8).getLong(), sampledBelow) < 0
                    || sampledBelow == -1;
            metadata.put(HEADER, "00-" + HEX.formatHex(batch, 0, 16) + "-" + HEX.formatHex(stage, 0, 8)
                    + "-" + (isSampled ? "01" : "00"));
        }
        return metadata;
    }

    private static byte[] sha256(String text) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }
}
