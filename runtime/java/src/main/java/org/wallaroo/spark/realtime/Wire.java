package org.wallaroo.spark.realtime;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * The bytes in which a task on an executor and the driver tell each other work and answers, in pieces: a message of
 * Spark's RPC has a limit.
 */
final class Wire {
    /** How long a piece is at most. */
    static final int PIECE_BYTES = 4 << 20;

    private Wire() {}

    /** What a task asks for, as the first byte of a request; the number of its attempt follows. */
    enum Request {
        BEGIN,
        NEXT,
        PIECE,
        STORED,
        ANSWER,
        FAILED
    }

    /** What the driver replies, as the first byte. */
    enum Reply {
        DONE,
        NOTHING,
        OVER,
        WORK,
        FAILURE
    }

    /** Writes a value. */
    interface Writing {
        void to(DataOutputStream out) throws IOException;
    }

    /** Gives a piece by its number. */
    interface Source {
        byte[] piece(int number) throws IOException, InterruptedException;
    }

    static byte[] bytes(Writing value) throws IOException {
        var found = new ByteArrayOutputStream();
        value.to(new DataOutputStream(found));
        return found.toByteArray();
    }

    /** Returns the pieces of a value, at least one. */
    static List<byte[]> pieces(int pieceBytes, Writing value) throws IOException {
        var found = new Pieces(pieceBytes);
        value.to(new DataOutputStream(found));
        return found.end();
    }

    static void write(DataOutputStream out, Work work) throws IOException {
        Question question = work.question();
        out.writeBoolean(question != null);
        if (question != null) {
            out.writeInt(question.bucket());
            out.writeBoolean(question.log() != null);
            if (question.log() != null) {
                out.write(question.log().toBytes());
            }
        }
        Barrier barrier = work.barrier();
        out.writeBoolean(barrier != null);
        if (barrier == null) {
            return;
        }
        out.writeLong(barrier.place().offset());
        out.writeLong(barrier.place().messages());
        out.writeLong(barrier.place().sequence());
        out.writeLong(barrier.deliveries());
        out.writeInt(barrier.changes().size());
        for (Changes each : barrier.changes()) {
            out.writeInt(each.bucket());
            out.write(each.before().toBytes());
            out.write(each.after().toBytes());
            write(out, each.entries());
        }
    }

    static Work work(DataInputStream in) throws IOException {
        Question question = null;
        if (in.readBoolean()) {
            int bucket = in.readInt();
            question = new Question(bucket, in.readBoolean() ? version(in) : null);
        }
        if (!in.readBoolean()) {
            return new Work(null, question);
        }
        var place = new Parcel.Place(in.readLong(), in.readLong(), in.readLong());
        long deliveries = in.readLong();
        List<Changes> changes = new ArrayList<>();
        for (int count = in.readInt(); count > 0; count--) {
            changes.add(new Changes(in.readInt(), version(in), version(in), entries(in)));
        }
        return new Work(new Barrier(place, deliveries, changes), question);
    }

    static void write(DataOutputStream out, List<byte[]> entries) throws IOException {
        out.writeInt(entries.size());
        for (byte[] entry : entries) {
            out.writeInt(entry.length);
            out.write(entry);
        }
    }

    static List<byte[]> entries(DataInputStream in) throws IOException {
        List<byte[]> entries = new ArrayList<>();
        for (int count = in.readInt(); count > 0; count--) {
            entries.add(whole(in, in.readInt()));
        }
        return entries;
    }

    private static BucketVersion version(DataInputStream in) throws IOException {
        return BucketVersion.fromBytes(whole(in, BucketVersion.BYTES));
    }

    private static byte[] whole(DataInputStream in, int length) throws IOException {
        byte[] found = in.readNBytes(length);
        if (found.length < length) {
            throw new EOFException("a message of a task ends too early");
        }
        return found;
    }

    /** Cuts what is written. */
    private static final class Pieces extends OutputStream {
        private final int pieceBytes;
        private final List<byte[]> found = new ArrayList<>();
        private final ByteArrayOutputStream open = new ByteArrayOutputStream();

        private Pieces(int pieceBytes) {
            this.pieceBytes = pieceBytes;
        }

        @Override
        public void write(int value) {
            write(new byte[] {(byte) value}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int begin, int length) {
            Objects.checkFromIndexSize(begin, length, bytes.length);
            int end = begin + length;
            for (int at = begin; at < end; ) {
                int size = Math.min(end - at, pieceBytes - open.size());
                open.write(bytes, at, size);
                at += size;
                if (open.size() == pieceBytes) {
                    cut();
                }
            }
        }

        private void cut() {
            found.add(open.toByteArray());
            open.reset();
        }

        private List<byte[]> end() {
            if (open.size() > 0 || found.isEmpty()) {
                cut();
            }
            return found;
        }
    }

    /** Reads pieces one after the other, each when it is wanted. */
    static final class Joined extends InputStream {
        private final Source source;
        private final int count;
        private byte[] piece = {};
        private int at;
        private int number;

        /**
         * Makes a stream.
         *
         * @param count how many pieces there are
         * @param source of the pieces
         */
        Joined(int count, Source source) {
            this.count = count;
            this.source = source;
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] bytes, int begin, int length) throws IOException {
            Objects.checkFromIndexSize(begin, length, bytes.length);
            while (at == piece.length) {
                if (number == count) {
                    return -1;
                }
                piece = next();
                at = 0;
            }
            int size = Math.min(length, piece.length - at);
            System.arraycopy(piece, at, bytes, begin, size);
            at += size;
            return size;
        }

        private byte[] next() throws IOException {
            try {
                return source.piece(number++);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
                throw new IOException("the task was interrupted", error);
            }
        }
    }
}
