package org.wallaroo.spark.journal;

import java.util.ArrayDeque;
import java.util.Deque;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.rpc.LastingCall;
import org.wallaroo.spark.rpc.ReplyQueue;
import org.wallaroo.spark.rpc.ServiceFailure;
import wallaroo.service.v1.Service.Chunk;
import wallaroo.service.v1.Service.ReadRequest;

/**
 * Reads a growing journal that a remote gateway sends to the engine of real-time mode. Some chunks are received in
 * advance.
 *
 * <p>If the stream breaks, a new stream goes on after the last whole piece that has arrived.
 */
final class JournalTail extends SentJournal implements LastingCall.Caller<ReadRequest, Chunk> {
    private static final int AHEAD = 16; // chunks of at most 1 MiB

    private final Settings settings;
    private final JournalHead head;
    private final Deque<byte[]> pieces = new ArrayDeque<>(); // whole frames each, as read() verifies
    private final LastingCall<ReadRequest, Chunk> call;
    private int taken; // number of bytes of the first piece that were read
    private long arrived; // offset after the last piece; only gRPC's thread changes this

    JournalTail(Settings settings, JournalOffset start, JournalHead head) {
        super(settings.gateway(), start);
        this.settings = settings;
        this.head = head;
        arrived = start.offset();
        call = new LastingCall<>(head.channel(), JournalPull.READ, this);
        head.feed(this, arrived);
        call.open();
    }

    @Override
    public synchronized ReadRequest request() {
        restart();
        return ReadRequest.newBuilder()
                .setEpoch(settings.gatewayEpoch())
                .setJournal(journal())
                .setStart(arrived)
                .build();
    }

    @Override
    public synchronized int ahead() {
        return Math.max(0, AHEAD - pieces.size());
    }

    @Override
    public void take(Chunk chunk) {
        try {
            long end = add(chunk);
            if (chunk.getIsContinued()) {
                call.ask(1); // a frame may have more than AHEAD chunks
            } else {
                head.moveTo(this, end);
            }
        } catch (OperatorFailure error) {
            fail(error);
        }
    }

    private synchronized long add(Chunk chunk) {
        byte[] whole = joined(chunk, arrived);
        if (whole != null) {
            pieces.add(whole);
            arrived += whole.length;
        }
        return arrived;
    }

    @Override
    public void fail(ReplyQueue.StreamEnded why) {
        fail(ServiceFailure.of("gateway", gateway(), why));
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
    public void close() {
        call.close();
    }
}
