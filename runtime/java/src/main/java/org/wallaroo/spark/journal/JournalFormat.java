package org.wallaroo.spark.journal;

import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The common part of Spark's data sources for journals, and for the ticks of a clock. A row has one column, with bytes.
 */
public abstract class JournalFormat implements TableProvider {
    private static final StructType SCHEMA = new StructType().add("row", DataTypes.BinaryType);

    /** Returns the stream that Spark reads for these options of the data source. */
    protected abstract MicroBatchStream stream(CaseInsensitiveStringMap options);

    @Override
    public final StructType inferSchema(CaseInsensitiveStringMap options) {
        return SCHEMA;
    }

    @Override
    public final Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        return new JournalTable();
    }

    private final class JournalTable implements Table, SupportsRead {
        @Override
        public String name() {
            return "wallaroo-journal";
        }

        @Override
        @Deprecated
        public StructType schema() {
            return SCHEMA;
        }

        @Override
        public Set<TableCapability> capabilities() {
            return EnumSet.of(TableCapability.MICRO_BATCH_READ);
        }

        @Override
        public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
            return () -> new Scan() {
                @Override
                public StructType readSchema() {
                    return SCHEMA;
                }

                @Override
                public MicroBatchStream toMicroBatchStream(String checkpoint) {
                    return stream(options);
                }
            };
        }
    }
}
