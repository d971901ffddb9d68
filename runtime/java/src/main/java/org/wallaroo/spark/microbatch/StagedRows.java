package org.wallaroo.spark.microbatch;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.StructType;
import org.wallaroo.spark.message.Columns;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.query.Flattened;

/** Reads staged files as rows, for a sink that Spark writes. */
public final class StagedRows {
    private static final String SCHEMA = "key BINARY, value BINARY";

    private StagedRows() {}

    /**
     * Returns the messages of staged files. The messages of one file are in order.
     *
     * @param session that reads them
     * @param files paths of the files
     */
    public static Dataset<Row> of(SparkSession session, List<String> files) {
        return session.createDataset(files, Encoders.STRING())
                .repartition(files.size())
                .flatMap(new Reader(), Encoders.row(StructType.fromDDL(SCHEMA)));
    }

    /** Reads the files of a partition. */
    record Reader() implements FlatMapFunction<String, Row> {
        @Override
        public Iterator<Row> call(String path) throws IOException {
            FileFrames frames = new FileFrames(Path.of(path));
            TaskContext context = TaskContext.get();
            if (context != null) {
                context.addTaskCompletionListener(ended -> {
                    frames.close();
                });
            }
            return new Flattened<>() {
                @Override
                protected Iterator<Row> following() {
                    byte[] frame = frames.next();
                    return frame == null ? null : rows(Columns.read(frame)).iterator();
                }
            };
        }

        private static List<Row> rows(Columns frame) {
            List<Row> found = new ArrayList<>();
            for (int i = 0; i < frame.count(); i++) {
                byte[] key = frame.key(i).length == 0 ? null : frame.key(i);
                byte[] value = frame.absent().get(i) ? null : frame.values().get(i);
                found.add(RowFactory.create(key, value));
            }
            return found;
        }
    }

    /** The frames of a file. One frame is in memory at a time. */
    private static final class FileFrames {
        private final Path path;
        private final DataInputStream input;

        private FileFrames(Path path) throws IOException {
            this.path = path;
            this.input = new DataInputStream(new BufferedInputStream(Files.newInputStream(path)));
        }

        /** Returns the next frame; null at the end of the file. */
        private byte[] next() {
            try {
                byte[] header = input.readNBytes(Frames.HEADER_BYTES);
                if (header.length == 0) {
                    return null;
                }
                Frames.Progress start = Frames.verify(header, -1);
                byte[] frame = Arrays.copyOf(header, Math.max(header.length, start.wanted()));
                input.readFully(frame, header.length, frame.length - header.length);
                Frames.Progress found = Frames.verify(frame, -1);
                if (found.end() != frame.length) {
                    throw new IOException(path + " is damaged: " + found.fault());
                }
                return frame;
            } catch (EOFException error) {
                throw new UncheckedIOException(path + " is cut", error);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        private void close() {
            try {
                input.close();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }
}
