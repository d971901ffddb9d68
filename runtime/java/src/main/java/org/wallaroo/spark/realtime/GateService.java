package org.wallaroo.spark.realtime;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.wallaroo.spark.realtime.Wire.Reply;
import org.wallaroo.spark.realtime.Wire.Request;

/** Calls the gate of a query for tasks on executors: what comes and goes is bytes of {@link Wire}. */
final class GateService {
    private final Gate gate;
    private final int pieceBytes;
    private Parcels outgoing = new Parcels(-1, List.of());
    private Parcels incoming = new Parcels(-1, List.of());

    /** Pieces of or for an attempt. */
    private record Parcels(long attempt, List<byte[]> pieces) {}

    GateService(Gate gate, int pieceBytes) {
        this.gate = gate;
        this.pieceBytes = pieceBytes;
    }

    /** Returns the reply to a request; may wait as long as the request says. */
    byte[] reply(byte[] request) {
        try {
            return replied(new DataInputStream(new ByteArrayInputStream(request)));
        } catch (IOException | RuntimeException error) {
            return failure(error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            return failure(error);
        }
    }

    private byte[] replied(DataInputStream in) throws IOException, InterruptedException {
        Request what = Request.values()[in.readByte()];
        long attempt = in.readLong();
        EngineCalls calls = gate.calls(attempt);
        switch (what) {
            case BEGIN -> {
                var start = new JournalOffset(in.readLong(), in.readLong(), in.readLong());
                calls.begin(start, new Attempt(in.readUTF(), in.readLong(), in.readInt(), attempt));
            }
            case NEXT -> {
                return next(attempt, calls, TimeUnit.MILLISECONDS.toNanos(in.readLong()));
            }
            case PIECE -> {
                byte[] piece = piece(attempt, in.readInt());
                return Wire.bytes(out -> {
                    out.writeByte(Reply.DONE.ordinal());
                    out.write(piece);
                });
            }
            case STORED -> calls.stored();
            case ANSWER -> take(attempt, calls, in);
            case FAILED -> calls.failed();
            default -> throw new IOException("a task sends " + what);
        }
        return only(Reply.DONE);
    }

    private byte[] next(long attempt, EngineCalls calls, long nanoseconds) throws IOException, InterruptedException {
        Work work = calls.next(nanoseconds);
        if (work == null || work == Work.OVER) {
            return only(work == null ? Reply.NOTHING : Reply.OVER);
        }
        List<byte[]> pieces = Wire.pieces(pieceBytes, out -> Wire.write(out, work));
        synchronized (this) {
            outgoing = new Parcels(attempt, pieces.size() > 1 ? pieces : List.of());
        }
        return Wire.bytes(out -> {
            out.writeByte(Reply.WORK.ordinal());
            out.writeInt(pieces.size());
            out.write(pieces.get(0));
        });
    }

    private synchronized byte[] piece(long attempt, int number) throws IOException {
        if (outgoing.attempt() != attempt || number >= outgoing.pieces().size()) {
            throw new IOException("task attempt " + attempt + " asks for piece " + number + ", which is not its own");
        }
        return outgoing.pieces().get(number);
    }

    private void take(long attempt, EngineCalls calls, DataInputStream in) throws IOException {
        int number = in.readInt();
        int count = in.readInt();
        List<byte[]> pieces;
        synchronized (this) {
            incoming = number == 0 ? new Parcels(attempt, new ArrayList<>()) : incoming;
            pieces = incoming.pieces();
            if (incoming.attempt() != attempt || number != pieces.size()) {
                throw new IOException("task attempt " + attempt + " sends piece " + number + " out of turn");
            }
            pieces.add(in.readAllBytes());
            incoming = number + 1 == count ? new Parcels(-1, List.of()) : incoming;
        }
        if (number + 1 == count) {
            calls.answer(Wire.entries(new DataInputStream(new Wire.Joined(count, pieces::get))));
        }
    }

    private static byte[] only(Reply reply) {
        return new byte[] {(byte) reply.ordinal()};
    }

    private static byte[] failure(Exception error) {
        String said = error instanceof RuntimeException && error.getMessage() != null ? error.getMessage() : "" + error;
        byte[] text = said.getBytes(StandardCharsets.UTF_8);
        byte[] reply = new byte[1 + text.length];
        reply[0] = (byte) Reply.FAILURE.ordinal();
        System.arraycopy(text, 0, reply, 1, text.length);
        return reply;
    }
}
