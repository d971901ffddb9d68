package org.wallaroo.spark.microbatch;

import java.util.zip.CRC32;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.query.Json;

/** Counts and checksum of a file that is being staged, for the descriptor with which the driver publishes it. */
final class StagedFile {
    private final int port;
    private final String path;
    private final int partition;
    private final CRC32 crc = new CRC32();
    private long bytes;
    private long messages;

    StagedFile(int port, String path, int partition) {
        this.port = port;
        this.path = path;
        this.partition = partition;
    }

    void add(byte[] frame) {
        crc.update(frame);
        bytes += frame.length;
        messages += Frames.count(frame, 0);
    }

    /** Returns the descriptor of the file. */
    String json() {
        return Json.object("port", port, "path", path, "bytes", bytes, "crc32", crc.getValue(), "messages", messages,
                "partition", partition);
    }

    /** Says whether a remote egress has staged the same content as was sent. */
    boolean isSame(int otherPort, long otherBytes, long otherCrc, long otherMessages) {
        return otherPort == port && otherBytes == bytes && otherCrc == crc.getValue() && otherMessages == messages;
    }
}
