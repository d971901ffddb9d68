package org.wallaroo.spark.stage;

import java.util.ArrayList;
import java.util.List;
import org.wallaroo.spark.message.Frames;

/** Groups frames, or entries of a log, into requests: servers take 65 MiB at once, and a frame has at most 64 MiB. */
final class RequestParts {
    /** Largest size of a request with several frames, or several entries of a log. */
    private static final int BYTES = 8 << 20;

    private RequestParts() {}

    /** Returns the frames of each request, without copies. */
    static List<List<byte[]>> of(List<byte[]> frames) {
        List<List<byte[]>> parts = new ArrayList<>();
        long size = 0;
        for (byte[] frame : frames) {
            if (parts.isEmpty() || size + frame.length > BYTES) {
                parts.add(new ArrayList<>());
                size = 0;
            }
            parts.get(parts.size() - 1).add(frame);
            size += frame.length;
        }
        return parts;
    }

    /** Returns the bytes of all frames of a request; a single frame is not copied. */
    static byte[] joined(List<byte[]> part) {
        return part.size() == 1 ? part.get(0) : Frames.joined(part);
    }
}
