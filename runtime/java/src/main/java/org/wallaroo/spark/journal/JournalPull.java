package org.wallaroo.spark.journal;

import com.google.protobuf.ByteString;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.rpc.Channels;
import org.wallaroo.spark.rpc.ReplyQueue;
import org.wallaroo.spark.rpc.ServiceCalls;
import wallaroo.service.v1.Service.Chunk;
import wallaroo.service.v1.Service.ReadRequest;

/** Reads a part of a journal that a gateway sends; a stream that breaks goes on after the last whole piece. */
final class JournalPull extends JournalReader {
    private static final MethodDescriptor<ReadRequest, Chunk> READ = Channels.method(
            "wallaroo.service.v1.JournalService/Read", MethodType.SERVER_STREAMING, ReadRequest.parser(),
            Chunk.parser());
    private static final long CHUNK_MS = 60_000;
    private static final int FRAME_BYTES = 64 << 20;

    private final ServiceCalls calls;
    private final String gateway;
    private final long epoch;
    private final String journal;
    private final long end;
    private ReplyQueue<ReadRequest, Chunk> stream; // null: none is open
    private byte[] piece = {}; // whole frames, from the offset on

    JournalPull(ServiceCalls calls, String gateway, long epoch, JournalOffset start, long end) {
        super(start);
        this.calls = calls;
        this.gateway = gateway;
        this.epoch = epoch;
        this.journal = JournalOffset.hex(start.journal());
        this.end = end;
    }

    @Override
    long reach(long most) {
        if (piece.length == 0) {
            piece = received();
        }
        return offset() + piece.length;
    }

    @Override
    byte[] get(int count) {
        return piece; // pieces are of whole frames: the gateway chooses them
    }

    @Override
    void passed(int count) {
        piece = new byte[0];
    }

    private byte[] received() {
        while (true) {
            try {
                ByteString data = ByteString.EMPTY;
                Chunk chunk;
                do {
                    chunk = next();
                    data = data.concat(chunk.getData());
                    if (data.size() > FRAME_BYTES || offset() + data.size() > end) {
                        throw damaged(offset(), "it is longer than what was asked for");
                    }
                } while (chunk.getIsContinued());
                calls.progressed();
                return data.toByteArray();
            } catch (ReplyQueue.StreamEnded error) {
                close();
                calls.again(error);
            }
        }
    }

    private Chunk next() {
        if (stream == null) {
            stream = new ReplyQueue<>(calls.channel(), READ);
            stream.send(ReadRequest.newBuilder().setEpoch(epoch).setJournal(journal).setStart(offset()).setEnd(end).build());
            stream.halfClose();
        }
        Chunk chunk = stream.poll(CHUNK_MS);
        if (chunk == null) {
            throw stream.late();
        }
        return chunk;
    }

    @Override
    OperatorFailure damaged(long at, String reason) {
        return OperatorFailure.of("R648", "service", "gateway", "address", gateway, "reason",
                "no whole frames at " + at + " of journal " + journal + ": " + reason);
    }

    @Override
    public void close() {
        if (stream != null) {
            stream.cancel();
            stream = null;
        }
    }
}
