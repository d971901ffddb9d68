package org.wallaroo.spark.query;

import java.util.Collections;
import java.util.Iterator;
import java.util.NoSuchElementException;

/** Iterates over the elements of several iterators, which a subclass makes one after the other, as late as possible. */
public abstract class ChainedIterator<T> implements Iterator<T> {
    private Iterator<T> current = Collections.emptyIterator(); // null after the end

    /** Returns the next iterator, or null at the end. */
    protected abstract Iterator<T> following();

    @Override
    public final boolean hasNext() {
        while (current != null && !current.hasNext()) {
            current = following();
        }
        return current != null;
    }

    @Override
    public final T next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return current.next();
    }
}
