package org.wallaroo.spark.microbatch;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
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
import org.wallaroo.spark.query.ChainedIterator;

/** Reads staged files as rows, for a sink that Spark writes. */
public final class StagedRows {
    private static final String SCHEMA = "key BINARY, value BINARY";

    private StagedRows() {}

    /**
     * Returns the messages of staged files. The messages of one file are in order.
     *
     * @param session that reads them
     * @param files paths of the files
     * @param joins whether a row has several messages, as an array of JSON without key
     */
    public static Dataset<Row> of(SparkSession session, List<String> files, boolean joins) {
        return session.createDataset(files, Encoders.STRING())
                .repartition(files.size())
                .flatMap(new Reader(joins), Encoders.row(StructType.fromDDL(SCHEMA)));
    }

    /** Reads the files of a partition. */
    record Reader(boolean joins) implements FlatMapFunction<String, Row> {
        @Override
        public Iterator<Row> call(String path) throws IOException {
            FileRows rows = new FileRows(Path.of(path), joins);
            TaskContext context = TaskContext.get();
            if (context != null) {
                context.addTaskCompletionListener(ended -> {
                    rows.close();
                });
            }
            return rows;
        }
    }

    /** The rows of a file. One frame is in memory at a time. */
    private static final class FileRows extends ChainedIterator<Row> {
        private final Path path;
        private final boolean joins;
        private final DataInputStream input;

        private FileRows(Path path, boolean joins) throws IOException {
            this.path = path;
            this.joins = joins;
            this.input = new DataInputStream(new BufferedInputStream(Files.newInputStream(path)));
        }

        @Override
        protected Iterator<Row> following() {
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
                return rows(Columns.read(frame)).iterator();
            } catch (EOFException error) {
                throw new UncheckedIOException(path + " is cut", error);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        private Stream<Row> rows(Columns frame) {
            return joins ? frame.arrays().stream().map(array -> RowFactory.create(null, array))
                    : IntStream.range(0, frame.count()).mapToObj(i -> RowFactory.create(
                            frame.key(i).length == 0 ? null : frame.key(i), frame.absent().get(i) ? null : frame.values().get(i)));
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
