package org.wallaroo.spark.worker;

import io.grpc.Metadata;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import wallaroo.worker.v1.WorkerOuterClass.Opening;

/**
 * Names the span of a stage in the metadata of its calls, in the form of W3C's Trace Context. The driver reports it.
 *
 * <p>Both compute the same ids from query, batch, stage and attempt; {@code wallaroo.worker.host.trace} has the rules.
 */
final class TraceParent {
    private static final Metadata.Key<String> HEADER =
            Metadata.Key.of("traceparent", Metadata.ASCII_STRING_MARSHALLER);

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
            metadata.put(HEADER, "00-" + hex(batch, 16) + "-" + hex(stage, 8) + "-" + (isSampled ? "01" : "00"));
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

    private static String hex(byte[] bytes, int count) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < count; i++) {
            text.append(String.format("%02x", bytes[i]));
        }
        return text.toString();
    }
}
