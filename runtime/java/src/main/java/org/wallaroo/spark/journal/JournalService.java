package org.wallaroo.spark.journal;

import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import java.util.List;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.rpc.Channels;
import org.wallaroo.spark.rpc.ServiceCalls;
import wallaroo.service.v1.Service.LimitRequest;
import wallaroo.service.v1.Service.Position;
import wallaroo.service.v1.Service.SplitReply;
import wallaroo.service.v1.Service.SplitRequest;

/**
 * A journal at a remote gateway, for micro-batches.
 *
 * @param gateway address of the gateway
 * @param epoch of the driver
 */
record JournalService(String gateway, long epoch) implements JournalPlace {
    private static final String PREFIX = "wallaroo.service.v1.JournalService/";
    private static final MethodDescriptor<LimitRequest, Position> LIMIT =
            Channels.method(PREFIX + "Limit", MethodType.UNARY, LimitRequest.parser(), Position.parser());
    private static final MethodDescriptor<SplitRequest, SplitReply> SPLIT =
            Channels.method(PREFIX + "Split", MethodType.UNARY, SplitRequest.parser(), SplitReply.parser());

    @Override
    public boolean isSent() {
        return true;
    }

    @Override
    public JournalOffset end() {
        LimitRequest all = LimitRequest.newBuilder().setEpoch(epoch).setMaxBytes(Long.MAX_VALUE).build();
        return offset(calls().call(LIMIT, all));
    }

    @Override
    public JournalOffset limit(JournalOffset from, long maxBytes, long waitMs) {
        LimitRequest request = LimitRequest.newBuilder().setEpoch(epoch).setJournal(JournalOffset.hex(from.journal()))
                .setStart(from.offset()).setMaxBytes(maxBytes).setMessages(from.messages()).build();
        JournalOffset end = offset(calls().call(LIMIT, request));
        if (end.offset() < from.offset()) {
            throw OperatorFailure.of("R698", "what", "journal " + JournalOffset.hex(from.journal()) + " of " + gateway
                    + " at offset " + end.offset(), "reason",
                    "it ends there; the checkpoint has read to " + from.offset());
        }
        return end;
    }

    @Override
    public List<Long> split(JournalOffset from, JournalOffset to, int parts) {
        SplitRequest request = SplitRequest.newBuilder().setEpoch(epoch).setJournal(JournalOffset.hex(from.journal()))
                .setStart(from.offset()).setEnd(to.offset()).setParts(parts).build();
        List<Long> ends = calls().call(SPLIT, request).getEndsList();
        long before = from.offset();
        for (long end : ends) {
            if (end <= before) {
                throw broke("ranges of " + from.offset() + " to " + to.offset() + " end at " + ends);
            }
            before = end;
        }
        if (before != to.offset()) {
            throw broke("ranges of " + from.offset() + " to " + to.offset() + " end at " + ends);
        }
        return ends;
    }

    @Override
    public JournalRange range(JournalOffset start, long end, int rowBytes) {
        return new JournalRange(new JournalPull(calls(), gateway, epoch, start, end), end, rowBytes);
    }

    private ServiceCalls calls() {
        return new ServiceCalls("gateway", gateway);
    }

    private JournalOffset offset(Position position) {
        try {
            long journal = Long.parseUnsignedLong(position.getJournal(), 16);
            return new JournalOffset(journal, position.getOffset(), position.getMessages());
        } catch (NumberFormatException error) {
            throw broke("\"" + position.getJournal() + "\" is no journal's id");
        }
    }

    private OperatorFailure broke(String reason) {
        return OperatorFailure.of("R648", "service", "gateway", "address", gateway, "reason", reason);
    }
}
