package org.wallaroo.spark.query;

import java.util.List;
import java.util.Map;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.message.LetterFrame;

/**
 * The rule for dead letters that end the query; {@code topology/error_policy.py} has the same rule.
 *
 * @param fails whether dead letters of sources, steps and sinks without their own policy end the query
 * @param parts for each source, step or sink with its own policy, by path, whether its dead letters end the query
 */
public record ErrorPolicy(boolean fails, Map<String, Boolean> parts) {
    /**
     * Returns the dead letter that ends the query: the one with the earliest source message, or null if none ends it.
     *
     * @param items frames of any ports
     */
    public LetterFrame.Letter firstThatStops(List<JournalRow.Item> items) {
        LetterFrame.Letter first = null;
        for (JournalRow.Item item : mayFail() ? items : List.<JournalRow.Item>of()) {
            if (item.port() == Frames.DEAD_LETTER_PORT) {
                first = earlier(first, LetterFrame.read(item.frame()).letters());
            }
        }
        return first;
    }

    private boolean mayFail() {
        return fails || parts.containsValue(true);
    }

    private LetterFrame.Letter earlier(LetterFrame.Letter first, List<LetterFrame.Letter> letters) {
        LetterFrame.Letter found = first;
        for (LetterFrame.Letter letter : letters) {
            boolean isEarlier = found == null || Long.compareUnsigned(letter.sequence(), found.sequence()) < 0;
            found = isEarlier && parts.getOrDefault(letter.path(), fails) ? letter : found;
        }
        return found;
    }
}
