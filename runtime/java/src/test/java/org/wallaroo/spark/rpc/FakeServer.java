package org.wallaroo.spark.rpc;

import com.google.protobuf.MessageLite;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.netty.shaded.io.netty.channel.EventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollServerDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.unix.DomainSocketAddress;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.function.Supplier;

/** A gRPC service on a Unix socket, or on a port of this machine. A test chooses its answers. */
public final class FakeServer implements AutoCloseable {
    private static final int MOST_BYTES = 65 << 20; // as workers take

    private final EventLoopGroup loop = new EpollEventLoopGroup(1);
    private final Server server;

    /** Answers the requests of one stream. */
    public interface Stream<Q, R> extends BiConsumer<Q, ServerCall<Q, R>> {}

    public FakeServer(Path socket, ServerServiceDefinition.Builder service) throws IOException {
        server = NettyServerBuilder.forAddress(new DomainSocketAddress(socket.toString()))
                .channelType(EpollServerDomainSocketChannel.class)
                .bossEventLoopGroup(loop)
                .workerEventLoopGroup(loop)
                .maxInboundMessageSize(MOST_BYTES)
                .directExecutor()
                .addService(service.build())
                .build()
                .start();
    }

    /** Serves on a port, for clients that have a token. */
    public FakeServer(int port, String token, ServerServiceDefinition.Builder service) throws IOException {
        server = NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", port))
                .intercept(new TokenCheck("Bearer " + token))
                .directExecutor()
                .addService(service.build())
                .build()
                .start();
    }

    private record TokenCheck(String expected) implements ServerInterceptor {
        @Override
        public <Q, R> ServerCall.Listener<Q> interceptCall(
                ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
            if (expected.equals(headers.get(Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER)))) {
                return next.startCall(call, headers);
            }
            call.close(Status.UNAUTHENTICATED, new Metadata());
            return new ServerCall.Listener<>() {};
        }
    }

    /** Returns the address HOST:PORT of the service. */
    public String address() {
        return "127.0.0.1:" + server.getPort();
    }

    public static <Q extends MessageLite, R extends MessageLite> void add(ServerServiceDefinition.Builder service,
            MethodDescriptor<Q, R> method, Supplier<Stream<Q, R>> streams) {
        add(service, method, Integer.MAX_VALUE, streams);
    }

    /** Adds a method that takes so many requests of a stream. The stream itself must request further ones. */
    public static <Q extends MessageLite, R extends MessageLite> void add(ServerServiceDefinition.Builder service,
            MethodDescriptor<Q, R> method, int requests, Supplier<Stream<Q, R>> streams) {
        ServerCallHandler<Q, R> handler = (call, headers) -> {
            call.request(requests);
            call.sendHeaders(new Metadata());
            return new Requests<>(call, streams.get());
        };
        service.addMethod(method, handler);
    }

    private static final class Requests<Q, R> extends ServerCall.Listener<Q> {
        private final ServerCall<Q, R> call;
        private final Stream<Q, R> stream;

        private Requests(ServerCall<Q, R> call, Stream<Q, R> stream) {
            this.call = call;
            this.stream = stream;
        }

        @Override
        public void onMessage(Q request) {
            stream.accept(request, call);
        }
    }

    @Override
    public void close() {
        server.shutdownNow();
        loop.shutdownGracefully(0, 1, TimeUnit.SECONDS).syncUninterruptibly();
    }
}
