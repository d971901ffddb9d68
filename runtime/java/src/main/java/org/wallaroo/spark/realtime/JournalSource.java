package org.wallaroo.spark.realtime;

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
import org.wallaroo.spark.query.Settings;

/** The format {@code wallaroo-journal-realtime}; its option {@code settings} is the text of {@link Settings}. */
public final class JournalSource implements TableProvider {
    /** The only column of all rows: the offset of a barrier. */
    static final StructType SCHEMA = new StructType().add("barrier", DataTypes.BinaryType);

    /** Name of the format. */
    static final String NAME = "wallaroo-journal-realtime";

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return SCHEMA;
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        return new JournalTable();
    }

    private static final class JournalTable implements Table, SupportsRead {
        @Override
        public String name() {
            return NAME;
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
            return () -> new JournalScan(new Settings(options.get("settings")));
        }
    }

    private record JournalScan(Settings settings) implements Scan {
        @Override
        public StructType readSchema() {
            return SCHEMA;
        }

        @Override
        public MicroBatchStream toMicroBatchStream(String checkpoint) {
            return new JournalStream(settings);
        }
    }
}
