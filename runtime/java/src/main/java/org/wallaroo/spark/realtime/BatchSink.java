package org.wallaroo.spark.realtime;

import java.nio.ByteBuffer;
import java.util.List;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.sink.RowSink;

/** Reports to the driver the offset of the last barrier of a batch. The engine delivers outputs. */
public final class BatchSink extends RowSink {
    @Override
    protected void end(CaseInsensitiveStringMap options, long batch, List<List<byte[]>> rows) {
        if (rows.size() != 1) {
            throw OperatorFailure.of("I901", "reason", rows.size() + " tasks wrote a batch; expected one");
        }
        List<byte[]> mine = rows.get(0);
        long offset = mine.isEmpty() ? BatchEnd.NOTHING : ByteBuffer.wrap(mine.get(mine.size() - 1)).getLong();
        BatchEnd.cover(options.get("settings"), offset);
    }
}
