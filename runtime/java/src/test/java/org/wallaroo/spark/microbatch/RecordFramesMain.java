package org.wallaroo.spark.microbatch;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.RecordSource;
import scala.jdk.javaapi.CollectionConverters;

/** Packs the rows in each line of the input into frames, which {@code runtime/tests/test_record_frames.py} checks. */
final class RecordFramesMain {
    private static final HexFormat HEX = HexFormat.of();

    private RecordFramesMain() {}

    public static void main(String[] args) throws IOException {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            JsonNode drawn = Json.parse(line);
            long batch = drawn.get("batch").asLong();
            List<Row> rows = new ArrayList<>();
            drawn.get("rows").forEach(row -> rows.add(row(row)));
            TaskAccount account = new TaskAccount(new Attempt("q", batch, 0, 0), 0);
            RecordSource source = Json.read(drawn.get("source"), RecordSource.class);
            List<String> frames = new ArrayList<>();
            new RecordFrames(source, rows.iterator(), batch, account, false, -1)
                    .forEachRemaining(row -> frames.add(HEX.formatHex(row.items().get(0).frame())));
            System.out.println(Json.write(frames));
        }
    }

    private static Row row(JsonNode row) {
        List<Row> headers = new ArrayList<>();
        row.get(4).forEach(header -> headers.add(RowFactory.create(header.get(0).asText(), bytes(header.get(1)))));
        Long sequence = row.get(0).isNull() ? null : row.get(0).asLong();
        return RowFactory.create(sequence, bytes(row.get(1)), bytes(row.get(2)), row.get(3).asLong(),
                CollectionConverters.asScala(headers).toSeq(), row.get(5).asInt(), row.get(6).asLong());
    }

    private static byte[] bytes(JsonNode hex) {
        return hex.isNull() ? null : HEX.parseHex(hex.asText());
    }
}
