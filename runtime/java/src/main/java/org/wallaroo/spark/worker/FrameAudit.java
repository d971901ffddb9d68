package org.wallaroo.spark.worker;

import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.Keys;
import org.wallaroo.spark.message.LetterFrame;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.OperatorFailure;
import wallaroo.worker.v1.WorkerOuterClass.Node;
import wallaroo.worker.v1.WorkerOuterClass.NodeKind;
import wallaroo.worker.v1.WorkerOuterClass.Output;
import wallaroo.worker.v1.WorkerOuterClass.Stage;

/** The part of {@link Audit} that checks the form of each output and each state change. */
final class FrameAudit {
    private static final int MOST_KEYS = 64; // number of keys checked per frame, each time other keys
    private static final int SHOWN = 80; // characters of a wrong value that an error shows

    private final Stage stage;
    private final String worker;
    private final Map<Integer, Boolean> keyed = new TreeMap<>(); // whether an exit's messages have keys, by port
    private final Set<Integer> statePorts = new HashSet<>();

    FrameAudit(Stage stage, String worker) {
        this.stage = stage;
        this.worker = worker;
        keyed.put(Frames.DEAD_LETTER_PORT, false);
        for (Node node : stage.getNodesList()) {
            if (Audit.EXITS.contains(node.getKind())) {
                keyed.put(node.getPort(), node.getKind() == NodeKind.NODE_KIND_KEY);
            }
            if (Audit.STATES.contains(node.getKind())) {
                statePorts.add(node.getStatePort());
            }
        }
    }

    void output(Output output) {
        int port = output.getPort();
        Boolean isKeyed = keyed.get(port);
        if (isKeyed == null) {
            throw refused("port", port, "expected one of " + keyed.keySet());
        }
        if (isKeyed && (output.getBucket() < 0 || output.getBucket() >= stage.getBucketCount())) {
            throw refused("bucket", output.getBucket(), "port " + port + " has 0 to " + (stage.getBucketCount() - 1));
        }
        if (!isKeyed && output.getBucket() != -1) {
            throw refused("bucket", output.getBucket(), "port " + port + " has -1");
        }
        byte[] frame = output.getFrame().toByteArray();
        whole("frame", frame, port);
        if (Frames.port(frame, 0) != port) {
            throw refused("frame", "port " + Frames.port(frame, 0), "the output has " + port);
        }
        if (frame[5] == Frames.FRAMED) {
            throw refused("frame", "encoding " + Frames.FRAMED, "only sources have it");
        }
        if (isKeyed) {
            hasKeys("frame", frame);
            keys(output, frame);
        }
        if (port == Frames.DEAD_LETTER_PORT) {
            letters(frame);
        }
    }

    void change(byte[] entry) {
        whole("change", entry, -1);
        if (!statePorts.contains(Frames.port(entry, 0))) {
            throw refused("change", "port " + Frames.port(entry, 0), "expected one of " + statePorts);
        }
        hasKeys("change", entry);
    }

    private void whole(String field, byte[] frame, int port) {
        Frames.Progress progress = Frames.verify(frame, -1);
        if (progress.end() == 0) {
            String fault = progress.fault().isEmpty() ? "the frame is not whole" : progress.fault();
            throw damaged(port < 0 ? field : "port " + port, fault);
        }
        int size = Frames.bytes(frame, 0);
        if (size != frame.length) {
            throw refused(field, frame.length + " bytes", "one frame, of " + size + " bytes");
        }
    }

    private void hasKeys(String field, byte[] frame) {
        if (Frames.count(frame, 0) > 0 && !Keys.isKeyed(frame)) {
            throw refused(field, "flags " + frame[4], "port " + Frames.port(frame, 0) + " has keys");
        }
    }

    private void keys(Output output, byte[] frame) {
        try {
            for (byte[] key : Keys.sample(frame, MOST_KEYS)) {
                int bucket = Keys.bucketOf(key, stage.getBucketCount());
                if (bucket != output.getBucket()) {
                    String text = shown(Json.write(new String(key, StandardCharsets.UTF_8)));
                    throw refused("bucket", output.getBucket(), "the key " + text + " belongs to " + bucket);
                }
            }
        } catch (IllegalArgumentException error) {
            throw damaged("port " + output.getPort(), error.getMessage());
        }
    }

    private void letters(byte[] frame) {
        try {
            LetterFrame.read(frame);
        } catch (IllegalArgumentException error) {
            throw refused("frame", "port " + Frames.DEAD_LETTER_PORT,
                    "each value is a DeadLetter; " + error.getMessage());
        }
    }

    private static String shown(String text) {
        return text.substring(0, Math.min(SHOWN, text.length()));
    }

    private OperatorFailure damaged(String place, String fault) {
        String reason = "a frame is damaged; stage \"" + stage.getId() + "\", " + place + ": " + fault;
        return OperatorFailure.of("W410", "worker", worker, "reason", reason);
    }

    OperatorFailure refused(String field, Object value, String expected) {
        String reason = "stage \"" + stage.getId() + "\", field " + shown(field + ": " + value) + "; " + expected;
        return OperatorFailure.of("W410", "worker", worker, "reason", reason);
    }
}
