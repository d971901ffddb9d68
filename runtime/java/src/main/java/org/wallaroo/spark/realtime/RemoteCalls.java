package org.wallaroo.spark.realtime;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.wallaroo.spark.realtime.Wire.Reply;
import org.wallaroo.spark.realtime.Wire.Request;

/** The calls of a task on an executor, as bytes to {@link GateService} in the driver. */
final class RemoteCalls implements EngineCalls {
    private final long attempt;
    private final Driver driver;
    private final int pieceBytes;

    /** The way to the driver. */
    interface Driver {
        /** Returns the reply to a request. */
        byte[] ask(byte[] request) throws IOException, InterruptedException;

        /** Sends a request without waiting for anything. */
        void send(byte[] request);

        /** Returns how long the driver may wait before it replies. */
        long longestNs();
    }

    RemoteCalls(long attempt, Driver driver) {
        this(attempt, driver, Wire.PIECE_BYTES);
    }

    RemoteCalls(long attempt, Driver driver, int pieceBytes) {
        this.attempt = attempt;
        this.driver = driver;
        this.pieceBytes = pieceBytes;
    }

    @Override
    public void begin(JournalOffset start, Attempt begun) {
        call(Request.BEGIN, out -> {
            out.writeLong(start.journal());
            out.writeLong(start.offset());
            out.writeLong(start.messages());
            out.writeUTF(begun.query());
            out.writeLong(begun.batch());
            out.writeInt(begun.partition());
        });
    }

    @Override
    public Work next(long nanoseconds) throws InterruptedException {
        long until = System.nanoTime() + nanoseconds;
        try {
            while (true) {
                long left = Math.max(0, until - System.nanoTime());
                long wait = Math.min(left, driver.longestNs());
                DataInputStream reply = ask(Request.NEXT, out -> out.writeLong(TimeUnit.NANOSECONDS.toMillis(wait)));
                switch (kind(reply)) {
                    case OVER:
                        return Work.OVER;
                    case WORK:
                        return taken(reply);
                    default:
                        break;
                }
                if (left == 0) {
                    return null;
                }
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private Work taken(DataInputStream reply) throws IOException {
        int count = reply.readInt();
        byte[] first = reply.readAllBytes();
        return Wire.work(new DataInputStream(new Wire.Joined(count, number -> {
            if (number == 0) {
                return first;
            }
            DataInputStream piece = ask(Request.PIECE, out -> out.writeInt(number));
            kind(piece);
            return piece.readAllBytes();
        })));
    }

    @Override
    public void stored() {
        call(Request.STORED, out -> {});
    }

    @Override
    public void answer(List<byte[]> found) {
        try {
            List<byte[]> pieces = Wire.pieces(pieceBytes, out -> Wire.write(out, found));
            for (int i = 0; i < pieces.size(); i++) {
                int number = i;
                call(Request.ANSWER, out -> {
                    out.writeInt(number);
                    out.writeInt(pieces.size());
                    out.write(pieces.get(number));
                });
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    @Override
    public void failed() {
        try {
            driver.send(request(Request.FAILED, out -> {}));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private void call(Request what, Wire.Writing more) {
        try {
            kind(ask(what, more));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("the task was interrupted", error);
        }
    }

    private DataInputStream ask(Request what, Wire.Writing more) throws IOException, InterruptedException {
        return new DataInputStream(new ByteArrayInputStream(driver.ask(request(what, more))));
    }

    private byte[] request(Request what, Wire.Writing more) throws IOException {
        return Wire.bytes(out -> {
            out.writeByte(what.ordinal());
            out.writeLong(attempt);
            more.to(out);
        });
    }

    /** Reads what a reply is; the driver's error becomes the task's, with a text that Spark's report keeps whole. */
    private static Reply kind(DataInputStream reply) throws IOException {
        Reply found = Reply.values()[reply.readByte()];
        if (found == Reply.FAILURE) {
            throw new RemoteFailure(new String(reply.readAllBytes(), StandardCharsets.UTF_8));
        }
        return found;
    }

    /** An error of the driver's side. */
    static final class RemoteFailure extends RuntimeException {
        private static final long serialVersionUID = 1L;

        private RemoteFailure(String text) {
            super(text);
        }
    }
}
