package org.wallaroo.spark.microbatch;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.DiskFailure;

/** Stages output in files of a directory of this machine, one for each port. */
final class StagedFiles implements Staging {
    private static final int BUFFER_BYTES = 256 << 10;
    private static final FileAttribute<?> PRIVATE =
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
    private static final FileAttribute<?> OWN =
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));

    private final Path directory;
    private final Attempt attempt;
    private final Map<Integer, Open> files = new TreeMap<>(); // by port

    StagedFiles(Path directory, Attempt attempt) {
        this.directory = directory;
        this.attempt = attempt;
    }

    private record Open(Path path, FileChannel channel, OutputStream output, StagedFile file) {}

    @Override
    public void write(int port, byte[] frame) {
        try {
            Open open = files.get(port);
            if (open == null) {
                open = open(port);
                files.put(port, open);
            }
            open.output.write(frame);
            open.file.add(frame);
        } catch (IOException error) {
            throw DiskFailure.of(directory, error);
        }
    }

    private Open open(int port) throws IOException {
        Files.createDirectories(directory, PRIVATE);
        Path path = directory.resolve(Staging.name(attempt, port));
        FileChannel channel = FileChannel.open(path,
                Set.of(StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.WRITE), OWN);
        return new Open(path, channel, new BufferedOutputStream(Channels.newOutputStream(channel), BUFFER_BYTES),
                new StagedFile(port, path.toString(), attempt.partition()));
    }

    @Override
    public List<String> finish() {
        List<String> found = new ArrayList<>();
        for (Open open : files.values()) {
            try {
                open.output.flush();
                open.channel.force(true);
                open.channel.close();
            } catch (IOException error) {
                throw DiskFailure.of(directory, error);
            }
            found.add(open.file.json());
        }
        return found;
    }

    @Override
    public void abort() {
        for (Open open : files.values()) {
            try {
                open.channel.close();
                Files.deleteIfExists(open.path);
            } catch (IOException error) {
                // The driver removes remaining files when it opens the output.
            }
        }
        files.clear();
    }
}
