package org.wallaroo.spark.stage;

import java.util.ArrayList;
import java.util.List;
import org.wallaroo.spark.message.Frames;

/** Cuts frames, or entries of a log, as requests take them: servers take 65 MiB at once, and one has 64 MiB at most. */
final class RequestParts {
    /** How large a request with several frames, or several entries of a log, may be. */
    private static final int BYTES = 8 << 20;

    private RequestParts() {}

    /** Returns the frames of each request; copies none. */
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

    /** Returns the frames of one request one after the other; the array may be that of a frame. */
    static byte[] joined(List<byte[]> part) {
        return part.size() == 1 ? part.get(0) : Frames.joined(part);
    }
}
