package org.wallaroo.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import java.util.Set;

/**
 * A message that was in flight when its worker ended or hung, so that it may be the cause.
 *
 * @param index of the call in its stream
 * @param ordinal of the message in the call; {@link #OUTSIDE} if no message was in flight
 * @param cause way in which the worker failed
 * @param text the cause in words
 * @param isShared whether other messages were in flight in the same process
 * @param note the worker's note about its work while no message is in flight, in a careful call
 */
public record Suspect(long index, long ordinal, Cause cause, String text, boolean isShared, String note) {
    /** Ordinal for work outside of messages: states were read or written. */
    static final long OUTSIDE = (1L << 62) - 1;
    // Signals that a fault of the program itself raises: ABRT, BUS, FPE, ILL, SEGV, SYS, TRAP.
    private static final Set<Integer> FAULT_SIGNALS = Set.of(6, 7, 8, 4, 11, 31, 5);

    private static final Map<Integer, String> SIGNALS = Map.of(4, "SIGILL", 5, "SIGTRAP", 6, "SIGABRT", 7, "SIGBUS",
            8, "SIGFPE", 9, "SIGKILL", 11, "SIGSEGV", 15, "SIGTERM", 31, "SIGSYS");

    /** Why a message is a suspect. */
    enum Cause {
        /** The deadline passed. */
        HUNG,
        /** The process ended by itself. */
        CRASHED,
        /** A signal from outside ended the process; the message need not be the cause. */
        KILLED
    }

    boolean isOutside() {
        return ordinal == OUTSIDE;
    }

    /**
     * Returns the suspect of a stream whose process has ended; null if there is none.
     *
     * @param ending how the process ended, as the supervisor knows; null if it does not know
     * @param flight the stream's file
     */
    static Suspect of(JsonNode ending, FlightFile flight) {
        String file = flight.name();
        if (ending == null || !ending.path("killed_for").asText().isEmpty() || !ending.path("at_work").has(file)) {
            return null;
        }
        JsonNode at = ending.path("at_work").path(file);
        int status = ending.path("status").asInt();
        String memory = ending.path("memory").asText();
        boolean isOwn = status >= 0 || FAULT_SIGNALS.contains(-status);
        return new Suspect(at.path(0).asLong(), at.path(1).asLong(), isOwn ? Cause.CRASHED : Cause.KILLED,
                statusText(status) + (memory.isEmpty() ? "" : "; " + memory), ending.path("at_work").size() > 1,
                flight.note());
    }

    /** Returns the reason why the message is skipped, as errors.json has it for C508 and C509. */
    String reason() {
        return cause == Cause.HUNG
                ? "no answer within " + text + " s"
                : "the worker ended while it ran this message; " + text;
    }

    private static String statusText(int status) {
        return status < 0
                ? "it was ended by " + SIGNALS.getOrDefault(-status, "signal " + -status)
                : "it exited with status " + status;
    }

    static String seconds(long milliseconds) {
        return milliseconds % 1000 == 0 ? String.valueOf(milliseconds / 1000) : String.valueOf(milliseconds / 1000.0);
    }
}
