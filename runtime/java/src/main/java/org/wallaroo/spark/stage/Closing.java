package org.wallaroo.spark.stage;

import java.util.Collection;
import java.util.function.Consumer;

/** Closes all resources of a collection. If one fails, the others are closed nevertheless. */
final class Closing {
    private Closing() {}

    static <T> void all(Collection<T> things, Consumer<? super T> close) {
        RuntimeException first = null;
        for (T thing : things) {
            try {
                close.accept(thing);
            } catch (RuntimeException error) {
                if (first == null) {
                    first = error;
                } else {
                    first.addSuppressed(error);
                }
            }
        }
        if (first != null) {
            throw first;
        }
    }
}
