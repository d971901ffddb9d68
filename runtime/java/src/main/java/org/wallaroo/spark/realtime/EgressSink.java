package org.wallaroo.spark.realtime;

import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The format {@code wallaroo-egress-realtime}: hands outputs to the egress while a batch runs. */
public final class EgressSink implements TableProvider, DataSourceRegister {
    /** Name of the format. */
    static final String NAME = "wallaroo-egress-realtime";

    @Override
    public String shortName() {
        return NAME;
    }

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return JournalSource.SCHEMA;
    }

    @Override
    public boolean supportsExternalMetadata() {
        return true;
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        return new EgressTable();
    }

    private static final class EgressTable implements Table, SupportsWrite {
        @Override
        public String name() {
            return NAME;
        }

        @Override
        @Deprecated
        public StructType schema() {
            return JournalSource.SCHEMA;
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
                    return new EgressWrite(settings);
                }
            };
        }
    }

    /** What a task has handed over: all up to an offset of the journal. */
    record Covered(long offset) implements WriterCommitMessage {}

    private record EgressWrite(Settings settings) implements StreamingWrite {
        @Override
        public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
            Settings chosen = settings;
            return (partition, task, epoch) -> new EgressWriter(chosen);
        }

        @Override
        public boolean useCommitCoordinator() {
            return false; // one task attempt runs at a time, and the egress refuses the streams of older ones
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
}
