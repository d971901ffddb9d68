package org.wallaroo.spark.sink;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A sink of Spark that brings the rows of a batch, which have one column of bytes, to the driver's Java. With
 * {@code foreachBatch} Spark would plan each batch twice.
 */
public abstract class RowSink implements TableProvider {
    private static final StructType SCHEMA = new StructType().add("row", DataTypes.BinaryType);

    /** Prepares the batch before its tasks run, if it needs that. */
    protected void begin(CaseInsensitiveStringMap options) {}

    /**
     * Takes the rows of a batch. Spark commits the batch afterwards. It repeats a batch that it could not commit.
     *
     * @param rows by partition
     */
    protected abstract void end(CaseInsensitiveStringMap options, long batch, List<List<byte[]>> rows);

    @Override
    public final StructType inferSchema(CaseInsensitiveStringMap options) {
        return SCHEMA;
    }

    @Override
    public final boolean supportsExternalMetadata() {
        return true;
    }

    @Override
    public final Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        return new RowTable();
    }

    private final class RowTable implements Table, SupportsWrite {
        @Override
        public String name() {
            return "wallaroo";
        }

        @Override
        @Deprecated
        public StructType schema() {
            return SCHEMA;
        }

        @Override
        public Set<TableCapability> capabilities() {
            return EnumSet.of(TableCapability.STREAMING_WRITE, TableCapability.ACCEPT_ANY_SCHEMA);
        }

        @Override
        public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
            return new Builder(info.options());
        }
    }

    private final class Builder implements WriteBuilder, SupportsStreamingUpdateAsAppend {
        private final CaseInsensitiveStringMap options;

        private Builder(CaseInsensitiveStringMap options) {
            this.options = options;
        }

        @Override
        public Write build() {
            return new Write() {
                @Override
                public StreamingWrite toStreaming() {
                    return new RowWrite(options);
                }
            };
        }
    }

    private final class RowWrite implements StreamingWrite {
        private final CaseInsensitiveStringMap options;

        private RowWrite(CaseInsensitiveStringMap options) {
            this.options = options;
        }

        @Override
        public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
            begin(options);
            return (partition, task, epoch) -> new Collected();
        }

        @Override
        public boolean useCommitCoordinator() {
            return false; // the driver gets the rows of one attempt of each task, and any attempt will do
        }

        @Override
        public void commit(long epoch, WriterCommitMessage[] messages) {
            end(options, epoch, Arrays.stream(messages).map(message -> ((CommittedRows) message).rows()).toList());
        }

        @Override
        public void abort(long epoch, WriterCommitMessage[] messages) {
            // The driver has not got the rows.
        }
    }

    private record CommittedRows(List<byte[]> rows) implements WriterCommitMessage {}

    private static final class Collected implements DataWriter<InternalRow> {
        private final List<byte[]> rows = new ArrayList<>();

        @Override
        public void write(InternalRow row) {
            rows.add(row.getBinary(0));
        }

        @Override
        public WriterCommitMessage commit() {
            return new CommittedRows(rows);
        }

        @Override
        public void abort() {
            rows.clear();
        }

        @Override
        public void close() {
            // Nothing is open.
        }
    }
}
