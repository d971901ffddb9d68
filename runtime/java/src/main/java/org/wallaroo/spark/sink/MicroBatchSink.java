package org.wallaroo.spark.sink;

import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.wallaroo.spark.query.Attempt;

/**
 * A sink that asks {@link MicroBatches} in the driver whether a micro-batch may run, and afterwards whether its rows
 * are published. The option {@code questions} names the instance to ask.
 */
public final class MicroBatchSink extends RowSink {
    @Override
    protected void begin(CaseInsensitiveStringMap options) {
        long batch = Long.parseLong(SparkContext.getOrCreate().getLocalProperty(Attempt.BATCH));
        MicroBatches.named(options.get("questions")).ask(batch, null);
    }

    @Override
    protected void end(CaseInsensitiveStringMap options, long batch, List<List<byte[]>> rows) {
        MicroBatches.named(options.get("questions")).ask(batch, rows.stream().flatMap(List::stream).toList());
    }
}
