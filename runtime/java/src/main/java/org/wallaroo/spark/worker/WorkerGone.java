package org.wallaroo.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;

/** Signals that unanswered calls must be sent again: to the next process, or to the same one if {@link #isServing}. */
public final class WorkerGone extends RuntimeException {
    private static final long serialVersionUID = 1L;
    private final int generation;
    private final transient JsonNode ending;
    private final transient FlightFile hungFile;
    private final transient Suspect hung;
    private boolean isServing;

    private WorkerGone(int generation, JsonNode ending, FlightFile hungFile, Suspect hung, Throwable cause) {
        super("process " + generation + " of a worker is gone", cause);
        this.generation = generation;
        this.ending = ending;
        this.hungFile = hungFile;
        this.hung = hung;
    }

    /**
     * Returns the error of a broken stream.
     *
     * @param generation number of the process
     * @param ending how it ended, as its supervisor knows; null if nobody knows
     * @param cause error of the stream
     */
    static WorkerGone ended(int generation, JsonNode ending, Throwable cause) {
        return new WorkerGone(generation, ending, null, null, cause);
    }

    /**
     * Returns the error of a process that has answered a call with a failure and goes on. The call may be repeated.
     *
     * @param generation number of the process
     * @param cause the failure
     */
    static WorkerGone serving(int generation, Throwable cause) {
        WorkerGone gone = ended(generation, null, cause);
        gone.isServing = true;
        return gone;
    }

    /**
     * Returns the error of a missed deadline.
     *
     * @param generation number of the process that was killed
     * @param ending how it ended, as its supervisor knows; null if nobody knows
     * @param file of the stream that missed the deadline
     * @param suspect the message in flight; null if there was none
     */
    static WorkerGone hung(int generation, JsonNode ending, FlightFile file, Suspect suspect) {
        return new WorkerGone(generation, ending, file, suspect, new IllegalStateException("it missed a deadline"));
    }

    /** Returns how the process ended, as its supervisor knows; null if nobody knows. */
    JsonNode ending() {
        return ending;
    }

    /** Says whether the process still serves, so that only the streams must be opened again. */
    boolean isServing() {
        return isServing;
    }

    /** Says whether the end of the process does not count as a break, because its cause is known and dealt with. */
    boolean isExcused() {
        return ending != null && ending.path("is_excused").asBoolean();
    }

    /** Returns a text for users about the end of the process and the process that follows. */
    String told(String worker, long process, long following) {
        int count = Math.max(ending.path("at_work").size(), hung == null ? 0 : 1);
        String flight = (count == 0 ? "no" : count) + (count == 1 ? " message was" : " messages were") + " in flight";
        return "worker \"" + worker + "\", process " + process + ": " + ending.path("text").asText() + "; " + flight
                + "; process " + following + " repeats what was not answered";
    }

    /** Returns the number of the process. */
    int generation() {
        return generation;
    }

    /** Returns the message of the stream that may have ended or hung the process; null if none is known. */
    public Suspect suspect(FlightFile file) {
        return hung != null && hungFile == file ? hung : Suspect.of(ending, file);
    }
}
