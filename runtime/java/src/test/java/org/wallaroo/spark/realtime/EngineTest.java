package org.wallaroo.spark.realtime;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

class EngineTest {
    /** Spark may begin a task while it stops the query: nobody would end its engine. */
    @Test
    void aQueryThatHasStoppedGetsNoEngine() {
        Settings settings = new Settings(Json.object("journal", "none"));
        Engine.stop(settings);
        IllegalStateException error =
                assertThrows(IllegalStateException.class, () -> Engine.at(settings, new JournalOffset(1, 0, 0)));
        assertEquals("the query has stopped", error.getMessage());
        assertNull(Engine.of(settings));
        assertEquals(-1, Engine.end(settings.text()));
    }
}
