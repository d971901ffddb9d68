package org.wallaroo.spark.worker;

import java.util.ArrayList;
import java.util.List;
import org.wallaroo.spark.worker.Suspect.Cause;
import wallaroo.worker.v1.WorkerOuterClass.Skip;

/**
 * What is known of one call that broke: which of its messages to leave out, and how it is repeated.
 *
 * <p>The rules are those of {@code worker/poison.py}, whose table has all cases.
 */
public final class Quarantine {
    private final List<Skip> skips = new ArrayList<>();
    private boolean isAlone;
    private boolean isCareful;
    private long killed = -1;

    /** Returns the messages to leave out. */
    public List<Skip> skips() {
        return skips;
    }

    /** Says whether no other call of the process may run a message meanwhile. */
    public boolean isAlone() {
        return isAlone;
    }

    /** Says whether messages run one by one. */
    public boolean isCareful() {
        return isCareful;
    }

    /** Lets messages run one by one from now on. */
    public void beCareful() {
        isCareful = true;
    }

    /**
     * Takes note of what happened; says whether it is certain which message is the cause, and it is seen to.
     *
     * @throws IllegalStateException the message was to be left out already
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

    /** Says whether a state, and no message, ends the worker, as far as can be found out. */
    boolean isBeyond(Suspect suspect) {
        boolean hasEnded = suspect.cause() == Cause.HUNG
                || suspect.cause() == Cause.CRASHED && (isAlone || !suspect.isShared());
        return suspect.isOutside() && isCareful && hasEnded;
    }

    private static Skip skipOf(Suspect suspect) {
        boolean isHung = suspect.cause() == Cause.HUNG;
        return Skip.newBuilder()
                .setOrdinal(suspect.ordinal())
                .setCode(isHung ? "C509" : "C508")
                .setReason(suspect.reason())
                .build();
    }
}
