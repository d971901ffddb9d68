package org.wallaroo.spark.realtime;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.wallaroo.spark.bucket.BucketVersion;
import org.wallaroo.spark.bucket.SparkBucketStore;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.query.Json;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The operator that gives {@link StateKeeper} the states of a checkpoint of micro-batches: it has the same store.
 *
 * <p>A row is JSON: {@code bucket}, its number in Spark's store; {@code nonce} of its version; {@code files} with the
 * entries of its log, oldest first.
 */
final class LogLoader extends StatefulProcessor<Integer, byte[], byte[]> {
    private static final long serialVersionUID = 1L;

    private transient SparkBucketStore store;

    @Override
    public void init(OutputMode mode, TimeMode time) {
        store = new SparkBucketStore(getHandle());
    }

    @Override
    public Iterator<byte[]> handleInputRows(Integer key, Iterator<byte[]> rows, TimerValues timers) {
        List<byte[]> passed = new ArrayList<>();
        while (rows.hasNext()) {
            byte[] row = rows.next();
            load(Json.parse(new String(row, StandardCharsets.UTF_8)));
            passed.add(row);
        }
        return CollectionConverters.asScala(passed.iterator());
    }

    private void load(JsonNode row) {
        List<byte[]> entries = new ArrayList<>();
        row.path("files").forEach(file -> entries.addAll(entriesOf(Path.of(file.asText()))));
        long bytes = entries.stream().mapToLong(entry -> entry.length).sum();
        long nonce = Long.parseUnsignedLong(row.path("nonce").asText(), 16);
        BucketVersion before = BucketVersion.EMPTY;
        store.store(row.path("bucket").asInt(), before, before.after(nonce, entries.size(), bytes, true), entries);
    }

    /** Returns the frames of a file, which has nothing but whole frames. */
    static List<byte[]> entriesOf(Path file) {
        List<byte[]> entries = new ArrayList<>();
        try (DataInputStream input = new DataInputStream(new BufferedInputStream(Files.newInputStream(file)))) {
            while (true) {
                byte[] head = input.readNBytes(Frames.HEADER_BYTES);
                if (head.length == 0) {
                    return entries;
                }
                byte[] entry = Arrays.copyOf(head, Frames.bytes(head, 0));
                input.readFully(entry, Frames.HEADER_BYTES, entry.length - Frames.HEADER_BYTES);
                entries.add(entry);
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
