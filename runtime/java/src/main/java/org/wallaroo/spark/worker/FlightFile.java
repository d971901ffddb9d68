package org.wallaroo.spark.worker;

import java.io.FileInputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The file in which a worker notes the message in flight of one stream. If the process ends or hangs, this message is
 * suspected. SPECIFICATION.md, section 4, defines the content.
 */
public final class FlightFile {
    /** Suffix of the file of a stream that was closed with a message in flight; the supervisor reads it, too. */
    static final String LEFT = ".left";
    private static final String PREFIX = "flight-";
    private static final int BYTES = 256;
    private static final int MARK_BYTES = 32;
    private static final AtomicLong NUMBERS = new AtomicLong();

    private final Path path;
    private final RandomAccessFile file; // null if not made. An interrupted reader would close a FileChannel
    private boolean isOpen;

    /**
     * The numbers at the beginning of the file, which the worker writes for each message.
     *
     * @param call number of the call in the stream
     * @param message 1 + ordinal of the message in flight; 0 if none is in flight
     * @param process id of the process that runs the stream; 0 if the worker does not report its id
     * @param progress grows while a message in flight makes progress
     */
    record Mark(long call, long message, long process, long progress) {
        private static Mark of(byte[] bytes) {
            ByteBuffer words = ByteBuffer.wrap(Arrays.copyOf(bytes, MARK_BYTES)).order(ByteOrder.LITTLE_ENDIAN);
            return new Mark(words.getLong(0), words.getLong(8), words.getLong(16), words.getLong(24));
        }

        private boolean mayShareProcess(Mark other) {
            return process == other.process || process == 0 || other.process == 0;
        }
    }

    /** Makes the file. If the directory is gone, the worker is gone, too: no file is made, and the stream will fail. */
    public FlightFile(Path directory) {
        long process = ProcessHandle.current().pid();
        path = directory.resolve(PREFIX + process + "-java" + NUMBERS.getAndIncrement());
        RandomAccessFile made = null;
        try {
            Files.createFile(path, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
            made = new RandomAccessFile(path.toFile(), "rw");
            made.setLength(BYTES);
        } catch (NoSuchFileException error) {
            made = null;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        file = made;
        isOpen = made != null;
    }

    /** Returns the path of the file; empty if the file was not made. */
    public String path() {
        return file == null ? "" : path.toString();
    }

    public String name() {
        return path.getFileName().toString();
    }

    /** Returns the mark that the worker has written. After the end of the stream, all its numbers are 0. */
    Mark read() {
        return Mark.of(read(0, MARK_BYTES));
    }

    /** Returns the worker's note about its work outside of messages, such as a read of a state; "" if it has none. */
    String note() {
        String text = new String(read(MARK_BYTES, BYTES - MARK_BYTES), StandardCharsets.UTF_8);
        int end = text.indexOf('\0');
        return end < 0 ? text : text.substring(0, end);
    }

    private synchronized byte[] read(int start, int count) {
        byte[] bytes = new byte[count];
        try {
            if (isOpen) {
                file.seek(start);
                file.read(bytes);
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return bytes;
    }

    /**
     * Returns the marks of the streams on whose progress this stream's call depends, by file name.
     *
     * <p>If a message of this stream is in flight, that is the mark of this stream. Otherwise its call may wait for
     * another call, so the marks of all streams of the process are returned, of any client, and of streams given up.
     */
    Map<String, Mark> look() {
        Mark own = read();
        Map<String, Mark> found = new HashMap<>();
        if (own.message() == 0) {
            try (DirectoryStream<Path> files = Files.newDirectoryStream(path.getParent(), PREFIX + "*")) {
                for (Path each : files) {
                    readMark(each, own, found);
                }
            } catch (NoSuchFileException error) {
                found.clear(); // the worker's directory is gone
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
        found.put(name(), own);
        return found;
    }

    private static void readMark(Path path, Mark own, Map<String, Mark> found) throws IOException {
        try (FileInputStream input = new FileInputStream(path.toFile())) {
            Mark mark = Mark.of(input.readNBytes(MARK_BYTES));
            if (own.mayShareProcess(mark)) {
                found.put(path.getFileName().toString(), mark);
            }
        } catch (FileNotFoundException error) {
            return; // the stream of this file has just ended
        }
    }

    /** Removes the file, or leaves it to the supervisor if a message is in flight, which may still end the process. */
    public synchronized void close() {
        if (!isOpen) {
            return;
        }
        boolean isAtWork = read().message() != 0;
        isOpen = false;
        try {
            file.close();
            if (isAtWork) {
                Files.move(path, Path.of(path + LEFT));
            } else {
                Files.deleteIfExists(path);
            }
        } catch (NoSuchFileException error) {
            return; // the worker's directory is gone
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
