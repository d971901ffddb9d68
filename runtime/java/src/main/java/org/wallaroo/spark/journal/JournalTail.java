package org.wallaroo.spark.journal;

import com.google.protobuf.ByteString;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.MethodDescriptor;
import java.util.ArrayDeque;
import java.util.Deque;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.rpc.Channels;
import org.wallaroo.spark.rpc.LastingCall;
import org.wallaroo.spark.rpc.ReplyQueue;
import org.wallaroo.spark.rpc.ServiceFailure;
import wallaroo.service.v1.Service.Chunk;
import wallaroo.service.v1.Service.ReadRequest;

/**
 * Reads a journal that a gateway sends as it grows, some chunks ahead.
 *
 * <p>A stream that breaks goes on after the last whole piece that has arrived.
 */
final class JournalTail extends JournalReader implements LastingCall.Caller<ReadRequest, Chunk> {
    static final MethodDescriptor<ReadRequest, Chunk> TAIL = Channels.method(
            "wallaroo.service.v1.JournalService/Tail", MethodType.SERVER_STREAMING, ReadRequest.parser(),
            Chunk.parser());
    private static final int AHEAD = 16; // chunks of at most 1 MiB
    private static final int FRAME_BYTES = 64 << 20;

    private final Settings settings;
    private final String journal;
    private final JournalHead head;
    private final Deque<byte[]> pieces = new ArrayDeque<>(); // whole frames each, as far as the gateway says
    private final LastingCall<ReadRequest, Chunk> call;
    private ByteString part = ByteString.EMPTY; // of a frame of several chunks
    private int taken; // of the first piece
    private long arrived; // offset after the last piece; gRPC's thread alone moves it

    JournalTail(Settings settings, JournalOffset start, JournalHead head) {
        super(start);
        this.settings = settings;
        this.head = head;
        journal = JournalOffset.hex(start.journal());
        arrived = start.offset();
        call = new LastingCall<>(head.channel(), TAIL, this);
        head.feed(this, arrived);
        call.open();
    }

    @Override
    public synchronized ReadRequest request() {
        part = ByteString.EMPTY;
        return ReadRequest.newBuilder()
                .setEpoch(settings.gatewayEpoch())
                .setJournal(journal)
                .setStart(arrived)
                .build();
    }

    @Override
    public synchronized int ahead() {
        return Math.max(0, AHEAD - pieces.size());
    }

    @Override
    public void take(Chunk chunk) {
        long end = add(chunk);
        if (part.size() > FRAME_BYTES || chunk.getData().isEmpty()) {
            fail(damaged(end, "a chunk has nothing in it, or is of a frame that is too long"));
        } else if (chunk.getIsContinued()) {
            call.ask(1); // a frame has any number of chunks
        } else {
            head.moveTo(this, end);
        }
    }

    private synchronized long add(Chunk chunk) {
        part = part.concat(chunk.getData());
        if (!chunk.getIsContinued()) {
            pieces.add(part.toByteArray());
            arrived += part.size();
            part = ByteString.EMPTY;
        }
        return arrived;
    }

    @Override
    public void fail(ReplyQueue.StreamEnded why) {
        fail(ServiceFailure.of("gateway", settings.gateway(), why));
    }

    private void fail(RuntimeException why) {
        head.fail(this, why);
        call.close();
    }

    @Override
    synchronized long reach(long end) {
        return Math.min(end, arrived);
    }

    @Override
    synchronized byte[] get(int count) {
        byte[] data = new byte[count];
        int at = 0;
        int from = taken;
        for (byte[] piece : pieces) {
            int size = Math.min(count - at, piece.length - from);
            System.arraycopy(piece, from, data, at, size);
            at += size;
            from = 0;
            if (at == count) {
                break;
            }
        }
        return data;
    }

    @Override
    void passed(int count) {
        int done = 0;
        synchronized (this) {
            taken += count;
            while (!pieces.isEmpty() && taken >= pieces.getFirst().length) {
                taken -= pieces.removeFirst().length;
                done++;
            }
        }
        if (done > 0) {
            call.ask(done);
        }
    }

    @Override
    OperatorFailure damaged(long at, String reason) {
        return OperatorFailure.of("R648", "service", "gateway", "address", settings.gateway(), "reason",
                "no whole frames at " + at + " of journal " + journal + ": " + reason);
    }

    @Override
    public void close() {
        call.close();
    }
}
