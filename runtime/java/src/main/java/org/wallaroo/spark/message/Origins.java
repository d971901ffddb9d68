package org.wallaroo.spark.message;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import java.util.List;
import java.util.function.Function;
import wallaroo.worker.v1.WorkerOuterClass.DeadLetter;
import wallaroo.worker.v1.WorkerOuterClass.Origin;

/** Puts into dead letters which record of Kafka they are of. */
public interface Origins {
    /** Of sources that are no topics. */
    Origins NONE = data -> null;

    /**
     * A topic.
     *
     * @param source that reads it
     * @param name of the topic
     */
    record Topic(String source, String name) {
        private static final int KEY_BYTES = 200; // of a key, which is there to be shown

        Origin origin(int partition, long offset, byte[] key) {
            return Origin.newBuilder().setSource(source).setTopic(name).setPartition(partition).setOffset(offset)
                    .setKey(ByteString.copyFrom(key, 0, Math.min(key.length, KEY_BYTES))).build();
        }
    }

    /**
     * Returns the function that gives the origin of a letter, or null where it is not known; null where none is.
     *
     * @param data one or more whole frames of sources
     */
    Function<LetterFrame.Letter, Origin> of(byte[] data);

    /**
     * Returns the frames given for frames of sources, with origins in their dead letters.
     *
     * @param given frames of any ports
     * @param data one or more whole frames of sources
     */
    default List<JournalRow.Item> put(List<JournalRow.Item> given, byte[] data) {
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
        try {
            return origin == null ? letter : new LetterFrame.Letter(letter.sequence(), letter.path(),
                    DeadLetter.parseFrom(letter.value()).toBuilder().setOrigin(origin).build().toByteArray());
        } catch (InvalidProtocolBufferException error) {
            throw new IllegalArgumentException("it was a dead letter before", error);
        }
    }
}
