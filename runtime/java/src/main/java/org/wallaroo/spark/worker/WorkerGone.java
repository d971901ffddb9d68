package org.wallaroo.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;

/** The streams to a process of a worker broke: calls without an answer are to be sent to the next one. */
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
     * Returns the sign of a broken stream.
     *
     * @param generation which process it was
     * @param ending how it ended, as its supervisor knows; null: nobody knows
     * @param cause what the stream said
     */
    static WorkerGone ended(int generation, JsonNode ending, Throwable cause) {
        return new WorkerGone(generation, ending, null, null, cause);
    }

    /**
     * Returns that a process, which goes on, has answered a call with a failure, after which the call may be repeated.
     *
     * @param generation which process it is
     * @param cause the failure
     */
    static WorkerGone serving(int generation, Throwable cause) {
        WorkerGone gone = ended(generation, null, cause);
        gone.isServing = true;
        return gone;
    }

    /**
     * Returns the sign of a missed deadline.
     *
     * @param generation which process was killed
     * @param ending how it ended, as its supervisor knows; null: nobody knows
     * @param file of the stream that missed it
     * @param suspect the message in flight; null: none was
     */
    static WorkerGone hung(int generation, JsonNode ending, FlightFile file, Suspect suspect) {
        return new WorkerGone(generation, ending, file, suspect, new IllegalStateException("it missed a deadline"));
    }

    /** Returns how the process ended, as its supervisor knows; null: nobody knows. */
    JsonNode ending() {
        return ending;
    }

    /** Says whether the process serves as before: only the streams are to be opened again. */
    boolean isServing() {
        return isServing;
    }

    /** Says whether its cause is known and dealt with, so that the end is no reason to give up. */
    boolean isExcused() {
        return ending != null && ending.path("is_excused").asBoolean();
    }

    /** Returns the same for people. */
    String told(String worker, long process, long following) {
        int count = Math.max(ending.path("at_work").size(), hung == null ? 0 : 1);
        String flight = (count == 0 ? "no" : count) + (count == 1 ? " message was" : " messages were") + " in flight";
        return "worker \"" + worker + "\", process " + process + ": " + ending.path("text").asText() + "; " + flight
                + "; process " + following + " repeats what was not answered";
    }

    /** Returns which process it was. */
    int generation() {
        return generation;
    }

    /** Returns the message of a stream that may be the cause; null: none is known. */
    public Suspect suspect(FlightFile file) {
        return hung != null && hungFile == file ? hung : Suspect.of(ending, file);
    }
}
