package org.wallaroo.spark.worker;

import java.util.ArrayList;
import java.util.List;
import org.wallaroo.spark.worker.Suspect.Cause;
import wallaroo.worker.v1.WorkerOuterClass.Skip;

/**
 * The facts about a call during which its worker ended or hung: the messages to skip, and the way to repeat the call.
 *
 * <p>A call is repeated together with other calls, or alone: then no other call of the process runs a message. A
 * careful call runs messages one by one, so that a message is in flight while its state is written. It stays careful.
 *
 * <table>
 * <caption>What becomes of a call</caption>
 * <tr><th>the suspect</th><th>and</th><th>skipped</th><th>the call is repeated</th></tr>
 * <tr><td>hung</td><td></td><td>yes, C509</td><td>together</td></tr>
 * <tr><td>ended its process</td><td>no other was in flight, or the call ran alone</td><td>yes, C508</td><td>together</td></tr>
 * <tr><td>ended its process</td><td>others were in flight too</td><td>no</td><td>alone</td></tr>
 * <tr><td>was in flight at a signal from outside</td><td>last time, too</td><td>yes, C508</td><td>together</td></tr>
 * <tr><td>was in flight at a signal from outside</td><td>for the first time</td><td>no</td><td>alone</td></tr>
 * <tr><td>no message: user code hung</td><td></td><td>no</td><td>together, careful</td></tr>
 * <tr><td>no message: it ended the process</td><td>no other was in flight</td><td>no</td><td>together, careful</td></tr>
 * <tr><td>no message: it ended the process</td><td>others were in flight</td><td>no</td><td>alone, careful</td></tr>
 * <tr><td>no message: a signal from outside</td><td></td><td>no</td><td>together</td></tr>
 * <tr><td>no message: it hung, or ended the process</td><td>careful before, no other could be the cause</td><td>no</td>
 * <td>not: W415, {@link #isBeyond}</td></tr>
 * </table>
 */
public final class Quarantine {
    private static final String HUNG = "C509";
    private static final long LEAST_MS = 1000; // least time for a message, however many messages have hung
    private static final int PATIENCE = 4; // a message may take this many times the longest time of other messages

    private final List<Skip> skips = new ArrayList<>();
    private boolean isAlone;
    private boolean isCareful;
    private long killed = -1;

    /** Returns the messages to skip. */
    public List<Skip> skips() {
        return skips;
    }

    /** Says whether no other call of the process may run a message while the call is repeated. */
    public boolean isAlone() {
        return isAlone;
    }

    /** Says whether the repeated call runs its messages one by one. */
    public boolean isCareful() {
        return isCareful;
    }

    /** Lets repetitions of the call run its messages one by one from now on. */
    public void beCareful() {
        isCareful = true;
    }

    /**
     * Records a suspect, and skips the message if it is certainly the cause.
     *
     * @return whether the cause is known and dealt with, so that the end of the process does not count against the
     *     worker
     *
     * @throws IllegalStateException if the worker was asked to skip this message
     */
    boolean learn(Suspect suspect) {
        if (suspect.isOutside()) {
            isCareful = isCareful || suspect.cause() != Cause.KILLED;
            isAlone = suspect.isShared() && suspect.cause() == Cause.CRASHED;
            return suspect.cause() == Cause.HUNG;
        }
        if (skips.stream().anyMatch(skip -> skip.getOrdinal() == suspect.ordinal())) {
            throw new IllegalStateException(
                    "it runs message " + suspect.ordinal() + " of a call, which it was asked to skip");
        }
        boolean isCertain = switch (suspect.cause()) {
            case HUNG -> true;
            case CRASHED -> isAlone || !suspect.isShared();
            case KILLED -> killed == suspect.ordinal();
        };
        if (isCertain) {
            skips.add(skipOf(suspect));
        }
        isAlone = !isCertain;
        killed = suspect.cause() == Cause.KILLED && !isCertain ? suspect.ordinal() : -1;
        return isCertain;
    }

    /** Says whether a careful call hung or ended its process outside of messages, so that a repetition cannot help. */
    boolean isBeyond(Suspect suspect) {
        boolean hasEnded = suspect.cause() == Cause.HUNG
                || suspect.cause() == Cause.CRASHED && (isAlone || !suspect.isShared());
        return suspect.isOutside() && isCareful && hasEnded;
    }

    /**
     * Returns the milliseconds that a message may take: fewer for each message of the call that has hung before.
     *
     * @param deadline milliseconds if no message has hung
     * @param slowest longest time that other messages took
     */
    long milliseconds(long deadline, long slowest) {
        long hung = skips.stream().filter(skip -> skip.getCode().equals(HUNG)).count();
        long shorter = Math.max(Math.max(deadline >> Math.min(hung, 62), LEAST_MS), PATIENCE * slowest);
        return hung == 0 ? deadline : Math.min(deadline, shorter);
    }

    private static Skip skipOf(Suspect suspect) {
        boolean isHung = suspect.cause() == Cause.HUNG;
        return Skip.newBuilder()
                .setOrdinal(suspect.ordinal())
                .setCode(isHung ? HUNG : "C508")
                .setReason(suspect.reason())
                .build();
    }
}
