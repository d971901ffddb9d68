package org.wallaroo.spark.realtime;

import java.nio.ByteBuffer;
import java.util.EnumSet;
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
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.wallaroo.spark.journal.JournalFormat;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;

/** The format {@code wallaroo-batch-realtime}: tells the driver how far a batch has come. The engine delivers outputs. */
public final class BatchSink implements TableProvider {
    /** Name of the format. */
    static final String NAME = "wallaroo-batch-realtime";

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return JournalFormat.SCHEMA;
    }

    @Override
    public boolean supportsExternalMetadata() {
        return true;
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        return new BatchTable();
    }

    private static final class BatchTable implements Table, SupportsWrite {
        @Override
        public String name() {
            return NAME;
        }

        @Override
        @Deprecated
        public StructType schema() {
            return JournalFormat.SCHEMA;
        }

        @Override
        public Set<TableCapability> capabilities() {
            return EnumSet.of(TableCapability.STREAMING_WRITE, TableCapability.ACCEPT_ANY_SCHEMA);
        }

        @Override
        public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
            return new Builder(new Settings(info.options().get("settings")));
        }
    }

    private record Builder(Settings settings)
            implements WriteBuilder, SupportsTruncate, SupportsStreamingUpdateAsAppend {
        @Override
        public WriteBuilder truncate() {
            return this;
        }

        @Override
        public Write build() {
            return new Write() {
                @Override
                public StreamingWrite toStreaming() {
                    return new BatchWrite(settings);
                }
            };
        }
    }

    /** How far a task has come: the offset of its last row; {@link BatchEnd#NOTHING}: it had none. */
    record Covered(long offset) implements WriterCommitMessage {}

    private record BatchWrite(Settings settings) implements StreamingWrite {
        @Override
        public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
            return (partition, task, epoch) -> new LastRow();
        }

        @Override
        public boolean useCommitCoordinator() {
            return false; // one task attempt runs at a time, and each takes barriers of one engine
        }

        @Override
        public void commit(long epoch, WriterCommitMessage[] messages) {
            if (messages.length != 1) {
                throw OperatorFailure.of("I901", "reason", messages.length + " tasks wrote a batch; expected one");
            }
            BatchEnd.cover(settings.text(), ((Covered) messages[0]).offset());
        }

        @Override
        public void abort(long epoch, WriterCommitMessage[] messages) {
            // Nothing is to be undone: what comes again is dropped by the egress.
        }
    }

    private static final class LastRow implements DataWriter<InternalRow> {
        private long offset = BatchEnd.NOTHING;

        @Override
        public void write(InternalRow row) {
            offset = ByteBuffer.wrap(row.getBinary(0)).getLong();
        }

        @Override
        public WriterCommitMessage commit() {
            return new Covered(offset);
        }

        @Override
        public void abort() {
            // What the engine has delivered and comes again, the egress drops.
        }

        @Override
        public void close() {
            // Nothing is open.
        }
    }
}
