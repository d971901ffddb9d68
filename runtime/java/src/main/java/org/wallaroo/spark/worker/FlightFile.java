package org.wallaroo.spark.worker;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;

/** The file in which a worker notes the message in flight of one stream; SPECIFICATION.md, section 4, has its content. */
public final class FlightFile {
    /** Ends the name of a file whose stream was given up; the supervisor looks at it, too. */
    static final String LEFT = ".left";
    private static final int BYTES = 256;
    private static final int MARK_BYTES = 32;
    private static final AtomicLong NUMBERS = new AtomicLong();

    private final Path path;
    private final FileChannel file;

    /**
     * What a file says.
     *
     * @param call its number in the stream
     * @param message 1 + ordinal of the message in flight; 0: none
     * @param process id of the process that runs the stream; 0: it does not say
     * @param progress grows while a message in flight makes progress
     */
    record Mark(long call, long message, long process, long progress) {}

    public FlightFile(Path directory) {
        long process = ProcessHandle.current().pid();
        path = directory.resolve("flight-" + process + "-java" + NUMBERS.getAndIncrement());
        try {
            file = FileChannel.open(path,
                    Set.of(StandardOpenOption.READ, StandardOpenOption.WRITE, StandardOpenOption.CREATE_NEW),
                    PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
            file.write(ByteBuffer.allocate(BYTES), 0);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    public String path() {
        return path.toString();
    }

    public String name() {
        return path.getFileName().toString();
    }

    Mark read() {
        ByteBuffer words = ByteBuffer.allocate(MARK_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        try {
            file.read(words, 0);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return new Mark(words.getLong(0), words.getLong(8), words.getLong(16), words.getLong(24));
    }

    /** Returns what the worker has noted of what it does for no message; empty: nothing. */
    String note() {
        ByteBuffer bytes = ByteBuffer.allocate(BYTES - MARK_BYTES);
        try {
            file.read(bytes, MARK_BYTES);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        String text = new String(bytes.array(), StandardCharsets.UTF_8);
        int end = text.indexOf('\0');
        return end < 0 ? text : text.substring(0, end);
    }

    /** Removes the file; one with a message in flight is left to the supervisor, as that may yet end the process. */
    public void close() {
        if (!file.isOpen()) {
            return;
        }
        boolean isAtWork = read().message() != 0;
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
