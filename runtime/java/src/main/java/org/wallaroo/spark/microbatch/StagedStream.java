package org.wallaroo.spark.microbatch;

import com.google.protobuf.ByteString;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import java.io.ByteArrayOutputStream;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.rpc.Channels;
import org.wallaroo.spark.rpc.ReplyQueue;
import org.wallaroo.spark.rpc.ServiceCalls;
import wallaroo.service.v1.Service.Chunk;
import wallaroo.service.v1.Service.StageReply;
import wallaroo.service.v1.Service.StageRequest;
import wallaroo.service.v1.Service.StatusReply;
import wallaroo.service.v1.Service.StatusRequest;

/**
 * Sends the output of a task's attempt to a remote egress, as soon as the attempt makes the output.
 *
 * <p>If the stream breaks, the attempt fails. Spark begins another attempt, which waits until the egress is back.
 */
final class StagedStream implements Staging {
    private static final String PREFIX = "wallaroo.service.v1.OutboxService/";
    static final MethodDescriptor<StageRequest, StageReply> STAGE = Channels.method(
            PREFIX + "Stage", MethodType.CLIENT_STREAMING, StageRequest.parser(), StageReply.parser());
    static final MethodDescriptor<StatusRequest, StatusReply> STATUS = Channels.method(
            PREFIX + "Status", MethodType.UNARY, StatusRequest.parser(), StatusReply.parser());
    private static final int CHUNK_BYTES = 1 << 20;
    private static final int BUFFER_BYTES = 512 << 10;
    private static final long TAKE_MS = 60_000; // longest time that the egress may take no data
    private static final long FINISH_MS = 120_000; // longest time that the egress may write to its disk

    private final String egress;
    private final long epoch;
    private final Attempt attempt;
    private final long takeMs;
    private final ServiceCalls calls;
    private final Map<Integer, StagedFile> files = new TreeMap<>(); // by port
    private final Map<Integer, ByteArrayOutputStream> waiting = new TreeMap<>(); // unsent frames, by port
    private ReplyQueue<StageRequest, StageReply> stream; // null if nothing was sent

    StagedStream(String egress, long epoch, Attempt attempt) {
        this(egress, epoch, attempt, TAKE_MS);
    }

    StagedStream(String egress, long epoch, Attempt attempt, long takeMs) {
        this.egress = egress;
        this.epoch = epoch;
        this.attempt = attempt;
        this.takeMs = takeMs;
        this.calls = new ServiceCalls("egress", egress);
    }

    @Override
    public void write(int port, byte[] frame) {
        files.computeIfAbsent(port, number -> new StagedFile(number, Staging.name(attempt, number), attempt.partition()))
                .add(frame);
        ByteArrayOutputStream mine = waiting.computeIfAbsent(port, number -> new ByteArrayOutputStream());
        if (mine.size() + frame.length > CHUNK_BYTES) {
            send(port, mine);
        }
        mine.writeBytes(frame);
        if (mine.size() >= BUFFER_BYTES) {
            send(port, mine);
        }
    }

    /** Sends the unsent frames of a port: several whole frames, or one frame in pieces. */
    private void send(int port, ByteArrayOutputStream mine) {
        ByteString data = ByteString.copyFrom(mine.toByteArray());
        mine.reset();
        for (int at = 0; at < data.size(); at += CHUNK_BYTES) {
            int end = Math.min(at + CHUNK_BYTES, data.size());
            Chunk chunk = Chunk.newBuilder().setData(data.substring(at, end)).setIsContinued(end < data.size()).build();
            send(StageRequest.newBuilder().setPort(port).setChunk(chunk).build());
        }
    }

    private void send(StageRequest request) {
        ReplyQueue<StageRequest, StageReply> open = stream();
        try {
            open.send(request, takeMs);
        } catch (ReplyQueue.StreamEnded error) {
            throw calls.failure(error);
        }
    }

    private ReplyQueue<StageRequest, StageReply> stream() {
        if (stream == null) {
            // Waits for the egress by a call that is repeated. The stream itself would fail if the egress is away.
            calls.call(STATUS, StatusRequest.newBuilder().setEpoch(epoch).build());
            stream = new ReplyQueue<>(calls.channel(), STAGE);
            stream.send(StageRequest.newBuilder()
                    .setAttempt(wallaroo.service.v1.Service.Attempt.newBuilder()
                            .setEpoch(epoch)
                            .setQuery(attempt.query())
                            .setBatch(attempt.batch())
                            .setPartition(attempt.partition())
                            .setAttempt(attempt.attempt()))
                    .build());
        }
        return stream;
    }

    @Override
    public List<String> finish() {
        if (files.isEmpty()) {
            return List.of();
        }
        waiting.forEach(this::send);
        send(StageRequest.newBuilder().setIsLast(true).build());
        stream().halfClose();
        StageReply reply;
        try {
            reply = stream().poll(FINISH_MS);
            if (reply == null) {
                throw stream().late();
            }
        } catch (ReplyQueue.StreamEnded error) {
            throw calls.failure(error);
        }
        boolean isSame = reply.getFilesCount() == files.size() && reply.getFilesList().stream().allMatch(
                file -> files.containsKey(file.getPort()) && files.get(file.getPort()).isSame(file.getPort(),
                        file.getBytes(), Integer.toUnsignedLong(file.getCrc32()), file.getMessages()));
        if (!isSame) {
            throw OperatorFailure.of("R648", "service", "egress", "address", egress, "reason",
                    "it has staged other files than were sent: " + reply.getFilesList());
        }
        return files.values().stream().map(StagedFile::json).toList();
    }

    @Override
    public void abort() {
        if (stream != null) {
            stream.cancel();
        }
    }
}
