package org.wallaroo.spark.state;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.Test;
import org.wallaroo.spark.bucket.BucketVersion;
import org.wallaroo.spark.bucket.PlainStore;
import org.wallaroo.spark.message.Keys;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.OperatorFailure;

class StoredLogsTest {
    private static final Path VECTORS = Path.of("../../topology-schema/vectors");

    private static JsonNode vectors(String name) throws IOException {
        return Json.parse(Files.readString(VECTORS.resolve(name)));
    }

    private static Map<StateKey, StateValue> latest(Iterable<byte[]> entries) {
        LatestStates states = new LatestStates(key -> true, size -> true);
        entries.forEach(states::take);
        return states.end();
    }

    @Test
    void bucketsOfKeysAreThoseOfTheVectors() throws IOException {
        vectors("keys.json").path("cases").forEach(each -> each.path("buckets").properties().forEach(bucket ->
                assertEquals(bucket.getValue().asInt(), Keys.bucketOf(
                        HexFormat.of().parseHex(each.path("hex").asText()), Integer.parseInt(bucket.getKey())))));
    }

    @Test
    void piecesOfTheVectorsAreJoinedOrRefused() throws IOException {
        for (JsonNode each : vectors("pieces.json").path("valid")) {
            byte[] state = HexFormat.of().parseHex(each.path("state").asText());
            StateValue found = new ArrayList<>(latest(entries(each)).values()).get(latest(entries(each)).size() - 1);
            assertArrayEquals(state, found.whole(), each.path("name").asText());
        }
        for (JsonNode each : vectors("pieces.json").path("invalid")) {
            assertThrows(OperatorFailure.class, () -> latest(entries(each)), each.path("name").asText());
        }
    }

    private static List<byte[]> entries(JsonNode vector) {
        List<byte[]> entries = new ArrayList<>();
        vector.path("entries").forEach(entry -> entries.add(HexFormat.of().parseHex(entry.asText())));
        return entries;
    }

    @Test
    void statesOfTablesAreThoseOfTheVectors() throws IOException {
        for (JsonNode each : vectors("goka.json").path("table_states")) {
            byte[] value = HexFormat.of().parseHex(each.path("value").asText());
            assertEquals(each.path("python").asText(), HexFormat.of().formatHex(TableStates.state(value, true)));
            assertEquals(each.path("go").asText(), HexFormat.of().formatHex(TableStates.state(value, false)));
        }
    }

    @Test
    void chosenStatesAreWhatAFilterGives() {
        Random random = new Random(3);
        for (int round = 0; round < 2000; round++) {
            List<DrawnLog> logs = new ArrayList<>();
            List<Row> rows = new ArrayList<>();
            for (int bucket = 0; bucket < 3; bucket++) {
                logs.add(new DrawnLog(random));
                rows.addAll(logs.get(bucket).rows(bucket, 1 + random.nextInt(5), random.nextBoolean()));
            }
            int port = 1 + random.nextInt(2);
            byte[] prefix = random.nextInt(3) == 0 ? DrawnLog.key(random) : new byte[0];
            byte[] after = random.nextInt(3) == 0 ? DrawnLog.key(random) : null;
            byte[] only = random.nextInt(4) == 0 ? DrawnLog.key(random) : null;
            int limit = random.nextInt(3) == 0 ? 1 + random.nextInt(3) : -1;
            int most = random.nextInt(3) == 0 ? random.nextInt(300) - 1 : -2;
            int page = random.nextInt(3) == 0 ? random.nextInt(600) : -1;
            String choice = Json.object("ports", List.of(port), "keys", only == null ? null : List.of(text(only)),
                    "prefixes", List.of(text(prefix)), "after", after == null ? null : text(after),
                    "limit", limit < 0 ? null : limit, "most_bytes", most < -1 ? null : most,
                    "page_bytes", page < 0 ? null : page);
            List<String> expected = new ArrayList<>();
            for (DrawnLog log : logs) {
                int count = 0;
                long size = 0;
                for (Map.Entry<StateKey, byte[]> state : log.states.entrySet()) { // in the order of keys
                    byte[] key = state.getKey().key();
                    boolean isWanted = state.getKey().port() == port
                            && (only == null || Arrays.equals(only, key))
                            && (after == null || Arrays.compareUnsigned(key, after) > 0)
                            && HexFormat.of().formatHex(key).startsWith(HexFormat.of().formatHex(prefix));
                    if (!isWanted || limit >= 0 && count == limit || page >= 0 && count > 1 && size > page) {
                        continue;
                    }
                    byte[] value = most < -1 || state.getValue().length <= most ? state.getValue() : new byte[0];
                    expected.add(shown(port, key, log.encodings.get(state.getKey()), state.getValue().length, value));
                    count++;
                    size += key.length + value.length;
                }
            }
            List<String> found = new ArrayList<>();
            new ChosenStates(choice).call(rows.iterator()).forEachRemaining(row -> found.add(
                    shown(row.getInt(0), row.getAs(1), row.getInt(2), row.getLong(3), row.getAs(4))));
            assertEquals(expected, found, choice);
        }
    }

    private static String text(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }

    private static String shown(int port, byte[] key, int encoding, long size, byte[] value) {
        return port + " " + text(key) + " " + encoding + " " + size + " " + text(value);
    }

    @Test
    void movedStatesAreInTheBucketsOfTheirKeysWhateverOrderRowsHave() {
        Random random = new Random(9);
        for (int round = 0; round < 500; round++) {
            DrawnLog log = new DrawnLog(random);
            int buckets = 1 + random.nextInt(7);
            int block = random.nextInt(3);
            int[] targets = random.ints(1 + random.nextInt(3), 0, 99).toArray();
            LogWriter.Layout layout = new LogWriter.Layout(block, buckets, targets);
            List<byte[]> rows = new ArrayList<>();
            LogWriter writer = new LogWriter(
                    layout, 1 + random.nextInt(900), 1 + random.nextInt(300), row -> rows.add(row.toBytes()));
            latest(log.entries).forEach(writer::add);
            writer.flush();
            Collections.shuffle(rows, random);
            PlainStore store = new PlainStore();
            List<byte[]> notes = LogLoader.load(store, rows.iterator());
            long keys = notes.stream().mapToLong(note -> Json.parse(new String(note)).path("keys").asLong()).sum();
            long bytes = notes.stream().mapToLong(note -> Json.parse(new String(note)).path("bytes").asLong()).sum();
            assertEquals(log.states.size(), keys);
            Map<StateKey, String> found = new TreeMap<>();
            for (int bucket = 0; bucket < buckets; bucket++) {
                int number = block * buckets + bucket;
                int at = bucket;
                BucketVersion version = store.version(number);
                bytes -= version.snapshotBytes();
                assertEquals(version.last() > 0, version.nonce() != 0 && version.counter() == 1);
                latest(store.log(number, version)).forEach((key, value) -> {
                    assertEquals(at, Keys.bucketOf(key.key(), buckets));
                    found.put(key, value.encoding() + text(value.whole()));
                });
            }
            assertEquals(0, bytes);
            Map<StateKey, String> expected = new TreeMap<>();
            log.states.forEach((key, value) -> expected.put(key, log.encodings.get(key) + text(value)));
            assertEquals(expected, found);
            rows.forEach(row -> assertEquals(LoadRow.targetOf(row),
                    targets[LoadRow.fromBytes(row).bucket() % buckets % targets.length]));
        }
    }

    @Test
    void aStoreThatLacksSomethingIsDamaged() {
        Random random = new Random(4);
        int refused = 0;
        for (int round = 0; round < 300; round++) {
            DrawnLog log = new DrawnLog(random);
            List<Row> rows = log.rows(0, random.nextInt(5), false);
            int at = random.nextInt(rows.size());
            Row row = rows.get(at);
            byte[] value = ((byte[]) row.getAs(1)).clone();
            if (random.nextBoolean() || at == 0) {
                rows.remove(at);
            } else {
                value[random.nextInt(value.length)] ^= 1;
                rows.set(at, DrawnLog.row(0, (int) row.getLong(0), value));
            }
            StoredLogs<byte[]> moved = StoredLogs.moving(new LogWriter.Layout(0, 1, new int[1]));
            if (rows.isEmpty()) {
                continue;
            }
            refused++;
            OperatorFailure error = assertThrows(
                    OperatorFailure.class, () -> moved.call(rows.iterator()).forEachRemaining(each -> { }));
            assertTrue(error.getMessage().contains("R664"), error.getMessage());
        }
        assertNotEquals(0, refused);
    }

    @Test
    void piecesThatHaveNotComeAreAnError() {
        List<byte[]> rows = new ArrayList<>();
        LogWriter writer = new LogWriter(new LogWriter.Layout(0, 1, new int[1]), 9, 10, row -> rows.add(row.toBytes()));
        writer.add(new StateKey(1, new byte[0]), new StateValue(16, 25, List.of(new byte[20], new byte[5])));
        assertEquals(3, rows.size());
        rows.remove(1);
        assertThrows(IllegalStateException.class, () -> LogLoader.load(new PlainStore(), rows.iterator()));
    }
}
