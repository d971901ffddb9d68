package org.wallaroo.spark.message;

import com.google.protobuf.ByteString;
import java.util.List;
import java.util.function.Function;
import wallaroo.worker.v1.WorkerOuterClass.Origin;

/**
 * Finds the Kafka records of messages that became dead letters, and notes them in the dead letters for the user. The
 * origin of a {@link JournalRow.Item} is something else: a number.
 */
public interface Origins {
    /** The implementation for sources that read no topic: it changes no dead letter. */
    Origins NONE = data -> null;

    /**
     * A topic of Kafka that a source reads.
     *
     * @param source that reads the topic
     * @param name of the topic
     */
    record Topic(String source, String name) {
        private static final int KEY_BYTES = 200; // a longer key is cut, since people only look at it

        public Origin origin(int partition, long offset, byte[] key) {
            return Origin.newBuilder().setSource(source).setTopic(name).setPartition(partition).setOffset(offset)
                    .setKey(ByteString.copyFrom(key, 0, Math.min(key.length, KEY_BYTES))).build();
        }
    }

    /**
     * Returns a function that finds the origin (the Kafka record) of a dead letter. The function returns null if the
     * origin is unknown. If no origin can be known, this method returns null in place of the function.
     *
     * @param data one or more whole frames of sources
     */
    Function<LetterFrame.Letter, Origin> of(byte[] data);

    /**
     * Notes the Kafka records in dead letters that a worker has returned.
     *
     * @param given frames that the worker has returned, of any ports
     * @param data frames of sources for which the worker has returned them
     */
    default List<JournalRow.Item> addTo(List<JournalRow.Item> given, byte[] data) {
        boolean hasLetters = given.stream().anyMatch(item -> item.port() == Frames.DEAD_LETTER_PORT);
        Function<LetterFrame.Letter, Origin> origins = hasLetters ? of(data) : null;
        return origins == null ? given : given.stream().map(item -> with(item, origins)).toList();
    }

    private static JournalRow.Item with(JournalRow.Item item, Function<LetterFrame.Letter, Origin> origins) {
        if (item.port() != Frames.DEAD_LETTER_PORT) {
            return item;
        }
        LetterFrame read = LetterFrame.read(item.frame());
        List<LetterFrame.Letter> letters = read.letters().stream()
                .map(letter -> with(letter, origins.apply(letter)))
                .toList();
        return letters.equals(read.letters()) ? item
                : new JournalRow.Item(item.port(), item.bucket(), item.origin(),
                        new LetterFrame(read.timestamp(), letters).toBytes());
    }

    private static LetterFrame.Letter with(LetterFrame.Letter letter, Origin origin) {
        var read = LetterFrame.parsed(letter.value());
        return origin == null || read.hasOrigin() ? letter : new LetterFrame.Letter(letter.sequence(), letter.path(),
                read.toBuilder().setOrigin(origin).build().toByteArray());
    }
}
