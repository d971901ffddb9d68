package org.wallaroo.spark.worker;

import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.MethodDescriptor;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.StageSettings;
import org.wallaroo.spark.rpc.Channels;
import org.wallaroo.spark.rpc.ReplyQueue;
import wallaroo.worker.v1.WorkerOuterClass.InitReply;
import wallaroo.worker.v1.WorkerOuterClass.InitRequest;

/**
 * Connects to all endpoints (sockets) of a worker's process, and checks in the first call that the worker has the
 * expected protocol and interface. The program that has started the worker has checked its capabilities.
 */
final class Handshake {
    private static final MethodDescriptor<InitRequest, InitReply> INIT = Channels.method(
            "wallaroo.worker.v1.Worker/Init", MethodType.UNARY, InitRequest.parser(), InitReply.parser());
    private static final String UNIX = "unix:";
    private static final long INIT_MS = 60_000;

    private final String worker;
    private final InitRequest ours;

    Handshake(StageSettings settings) {
        worker = settings.worker();
        ours = settings.init();
    }

    /**
     * Returns connections to all endpoints.
     *
     * @param socket of the first endpoint
     * @throws OperatorFailure W416 or W403 if the worker does not fit, or the failure that the worker reports
     * @throws ReplyQueue.StreamEnded if the worker went away
     */
    List<ManagedChannel> all(Path socket) {
        List<ManagedChannel> channels = new ArrayList<>(List.of(Channels.open(socket.toString())));
        try {
            for (String target : with(channels.get(0)).getEndpointsList()) {
                if (!target.startsWith(UNIX)) {
                    throw brokeRules("endpoint '" + target + "' is not a Unix domain socket");
                }
                String path = target.substring(UNIX.length());
                if (!path.equals(socket.toString())) {
                    channels.add(Channels.open(path));
                    with(channels.get(channels.size() - 1));
                }
            }
            return channels;
        } catch (RuntimeException error) {
            channels.forEach(ManagedChannel::shutdownNow);
            throw error;
        }
    }

    private InitReply with(ManagedChannel channel) {
        ReplyQueue<InitRequest, InitReply> call = new ReplyQueue<>(channel, INIT);
        call.send(ours);
        call.halfClose();
        InitReply reply = call.poll(INIT_MS);
        if (reply == null) {
            throw brokeRules("no answer to the handshake");
        }
        // A reply with nothing but a failure raises this failure. Otherwise the errors below say which worker it is.
        if (reply.hasFailure() && (reply.getProtocolMax() == 0 || reply.getInterfaceHash().isEmpty())) {
            throw OperatorFailure.reported(worker, reply.getFailure());
        }
        if (reply.getProtocolMin() > ours.getProtocolMax() || reply.getProtocolMax() < ours.getProtocolMin()) {
            throw OperatorFailure.of("W416", "worker", worker, "lack",
                    "speaks protocol " + range(reply.getProtocolMin(), reply.getProtocolMax()) + "; the runtime speaks "
                            + range(ours.getProtocolMin(), ours.getProtocolMax()));
        }
        if (!ours.getInterfaceHash().isEmpty() && !reply.getInterfaceHash().equals(ours.getInterfaceHash())) {
            throw OperatorFailure.of("W403", "worker", worker, "reason", "its interface hash is "
                    + reply.getInterfaceHash() + "; the topology has " + ours.getInterfaceHash());
        }
        if (reply.hasFailure()) {
            throw OperatorFailure.reported(worker, reply.getFailure());
        }
        return reply;
    }

    private static String range(int least, int most) {
        return least == most ? String.valueOf(least) : least + " to " + most;
    }

    private OperatorFailure brokeRules(String reason) {
        return OperatorFailure.of("W410", "worker", worker, "reason", reason);
    }
}
