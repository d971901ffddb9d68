package org.wallaroo.spark.query;

import java.util.Map;

/**
 * The ticks that make time pass for windows, timers and ttl in a PySpark job ({@code apply}).
 *
 * @param kind {@link #CLOCK}, {@link #WATERMARKS} or {@link #END}; empty if nothing makes time pass
 * @param intervalMs time from one tick of the clock to the next
 * @param delays for each source, by name, the milliseconds by which its watermark is earlier than its latest row
 */
public record Ticks(String kind, long intervalMs, Map<String, Long> delays) {
    /** The kind of ticks that have the time at which a micro-batch begins. */
    public static final String CLOCK = "clock";
    /** The kind of ticks that end a micro-batch, with a time before which no more rows are expected. */
    public static final String WATERMARKS = "watermarks";
    /** The kind of ticks that end a batch, with a time that is later than the times of all rows. */
    public static final String END = "end";

    /** Says whether the ticks have this kind. */
    public boolean are(String kind) {
        return this.kind.equals(kind);
    }
}
