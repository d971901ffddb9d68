package org.wallaroo.spark.journal;

import com.google.protobuf.ByteString;
import org.wallaroo.spark.query.OperatorFailure;
import wallaroo.service.v1.Service.Chunk;

/** Reads a journal that a remote gateway sends in pieces of whole frames. A long piece comes in several chunks. */
abstract class SentJournal extends JournalReader {
    private static final int FRAME_BYTES = 64 << 20;

    private final String gateway;
    private final String journal;
    private ByteString part = ByteString.EMPTY; // chunks of an incomplete piece

    SentJournal(String gateway, JournalOffset start) {
        super(start);
        this.gateway = gateway;
        this.journal = JournalOffset.hex(start.journal());
    }

    /** Returns the address of the gateway. */
    final String gateway() {
        return gateway;
    }

    /** Returns the id of the journal. */
    final String journal() {
        return journal;
    }

    /** Forgets the incomplete piece of a broken stream, since the next stream sends this piece again. */
    final void restart() {
        part = ByteString.EMPTY;
    }

    /** Adds a chunk. Returns the piece that begins at offset {@code at}, or null if the next chunk continues it. */
    final byte[] joined(Chunk chunk, long at) {
        part = part.concat(chunk.getData());
        if (part.size() > FRAME_BYTES || chunk.getData().isEmpty()) {
            throw damaged(at, "a chunk has nothing in it, or is of a frame that is too long");
        }
        if (chunk.getIsContinued()) {
            return null;
        }
        byte[] whole = part.toByteArray();
        part = ByteString.EMPTY;
        return whole;
    }

    @Override
    final OperatorFailure damaged(long at, String reason) {
        return OperatorFailure.of("R648", "service", "gateway", "address", gateway, "reason",
                "no whole frames at " + at + " of journal " + journal + ": " + reason);
    }
}
