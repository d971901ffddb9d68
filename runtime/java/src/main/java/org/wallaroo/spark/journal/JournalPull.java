package org.wallaroo.spark.journal;

import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import org.wallaroo.spark.rpc.Channels;
import org.wallaroo.spark.rpc.ReplyQueue;
import org.wallaroo.spark.rpc.ServiceCalls;
import wallaroo.service.v1.Service.Chunk;
import wallaroo.service.v1.Service.ReadRequest;

/** Reads a range of a journal from a remote gateway, in a task. If the stream breaks, another one sends the rest. */
final class JournalPull extends SentJournal {
    static final MethodDescriptor<ReadRequest, Chunk> READ = Channels.method(
            "wallaroo.service.v1.JournalService/Read", MethodType.SERVER_STREAMING, ReadRequest.parser(),
            Chunk.parser());
    private static final long CHUNK_MS = 60_000;

    private final ServiceCalls calls;
    private final long epoch;
    private final long end;
    private ReplyQueue<ReadRequest, Chunk> stream; // null if no stream is open
    private byte[] piece = {}; // received frames that were not read yet; they begin at offset()

    JournalPull(ServiceCalls calls, String gateway, long epoch, JournalOffset start, long end) {
        super(gateway, start);
        this.calls = calls;
        this.epoch = epoch;
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
        return piece; // a piece has whole frames, and the gateway chooses its length
    }

    @Override
    void passed(int count) {
        piece = new byte[0];
    }

    private byte[] received() {
        while (true) {
            try {
                byte[] data;
                do {
                    data = joined(next(), offset());
                } while (data == null);
                if (offset() + data.length > end) {
                    throw damaged(offset(), "it is longer than what was asked for");
                }
                calls.progressed();
                return data;
            } catch (ReplyQueue.StreamEnded error) {
                close();
                calls.again(error);
            }
        }
    }

    private Chunk next() {
        if (stream == null) {
            stream = new ReplyQueue<>(calls.channel(), READ);
            restart();
            stream.send(ReadRequest.newBuilder().setEpoch(epoch).setJournal(journal()).setStart(offset()).setEnd(end).build());
            stream.halfClose();
        }
        Chunk chunk = stream.poll(CHUNK_MS);
        if (chunk == null) {
            throw stream.late();
        }
        return chunk;
    }

    @Override
    public void close() {
        if (stream != null) {
            stream.cancel();
            stream = null;
        }
    }
}
