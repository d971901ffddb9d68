package org.wallaroo.spark.realtime;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class ParcelTest {
    @Test
    void bytesAreReadBack() {
        Random random = new Random(7);
        for (int round = 0; round < 200; round++) {
            List<Parcel.Item> items = new ArrayList<>();
            for (int i = random.nextInt(4); i > 0; i--) {
                byte[] frame = new byte[random.nextInt(100)];
                random.nextBytes(frame);
                items.add(new Parcel.Item(random.nextInt(65536), random.nextInt(10) - 1, random.nextInt(99) - 1, frame));
            }
            Parcel.Kind kind = Parcel.Kind.values()[random.nextInt(Parcel.Kind.values().length)];
            Parcel parcel = new Parcel(kind, random.nextLong(), random.nextLong(), items);
            Parcel read = Parcel.fromBytes(parcel.toBytes());
            assertEquals(parcel.kind(), read.kind());
            assertEquals(parcel.offset(), read.offset());
            assertEquals(parcel.messages(), read.messages());
            assertEquals(items.size(), read.items().size());
            for (int i = 0; i < items.size(); i++) {
                assertEquals(items.get(i).port(), read.items().get(i).port());
                assertEquals(items.get(i).bucket(), read.items().get(i).bucket());
                assertEquals(items.get(i).origin(), read.items().get(i).origin());
                assertArrayEquals(items.get(i).frame(), read.items().get(i).frame());
            }
        }
    }
}
