package org.wallaroo.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;

/** The streams to a process of a worker broke: what was not answered is to be sent to the next one. */
public final class WorkerGone extends RuntimeException {
    private static final long serialVersionUID = 1L;
    private final int generation;
    private final transient JsonNode ending;
    private final String hungFile;
    private final transient Suspect hung;

    private WorkerGone(int generation, JsonNode ending, String hungFile, Suspect hung, Throwable cause) {
        super("process " + generation + " of a worker is gone", cause);
        this.generation = generation;
        this.ending = ending;
        this.hungFile = hungFile;
        this.hung = hung;
    }

    /**
     * Returns what a broken stream shows.
     *
     * @param generation which process it was
     * @param ending how it ended, as its supervisor knows; null: nobody knows
     * @param cause what the stream said
     */
    static WorkerGone ended(int generation, JsonNode ending, Throwable cause) {
        return new WorkerGone(generation, ending, "", null, cause);
    }

    /**
     * Returns what a missed deadline shows.
     *
     * @param generation which process was killed
     * @param file of the stream that missed it
     * @param suspect the message in flight; null: none was
     */
    static WorkerGone hung(int generation, String file, Suspect suspect) {
        return new WorkerGone(generation, null, file, suspect, new IllegalStateException("it missed a deadline"));
    }

    /** Returns which process it was. */
    int generation() {
        return generation;
    }

    /** Returns the message of a stream that may be the cause; null: none is known. */
    public Suspect suspect(String file) {
        return hung != null && hungFile.equals(file) ? hung : Suspect.of(ending, file);
    }
}
