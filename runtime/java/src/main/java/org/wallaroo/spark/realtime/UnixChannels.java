package org.wallaroo.spark.realtime;

import com.google.protobuf.MessageLite;
import com.google.protobuf.Parser;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.channel.EventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.unix.DomainSocketAddress;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;

/** gRPC over Unix sockets, and the methods that the operators call. */
final class UnixChannels {
    /** How many replies a call asks for ahead. */
    static final int REPLIES = 1024;
    private static final int WINDOW_BYTES = 16 << 20;
    private static final int MAX_MESSAGE_BYTES = 72 << 20; // a frame of 64 MiB, and what is around it
    private static EventLoopGroup loop;

    private UnixChannels() {}

    static ManagedChannel open(String path) {
        return NettyChannelBuilder.forAddress(new DomainSocketAddress(path))
                .eventLoopGroup(loop())
                .channelType(EpollDomainSocketChannel.class)
                .usePlaintext()
                .overrideAuthority("localhost")
                .directExecutor()
                .flowControlWindow(WINDOW_BYTES)
                .maxInboundMessageSize(MAX_MESSAGE_BYTES)
                .intercept(new Asking())
                .build();
    }

    /** Lets each call ask for replies: for some ahead, and for one more when one comes, since streams live for weeks. */
    private static final class Asking implements ClientInterceptor {
        @Override
        public <Q, R> ClientCall<Q, R> interceptCall(MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
            return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
                @Override
                public void start(Listener<R> listener, Metadata headers) {
                    super.start(new SimpleForwardingClientCallListener<>(listener) {
                        @Override
                        public void onMessage(R reply) {
                            request(1);
                            super.onMessage(reply);
                        }
                    }, headers);
                    request(REPLIES);
                }
            };
        }
    }

    private static synchronized EventLoopGroup loop() {
        if (loop == null) {
            loop = new EpollEventLoopGroup(1, task -> {
                Thread thread = new Thread(task, "wallaroo-grpc");
                thread.setDaemon(true);
                return thread;
            });
        }
        return loop;
    }

    static <Q extends MessageLite, R extends MessageLite> MethodDescriptor<Q, R> method(
            String name, MethodDescriptor.MethodType type, Parser<Q> request, Parser<R> reply) {
        return MethodDescriptor.<Q, R>newBuilder()
                .setType(type)
                .setFullMethodName(name)
                .setRequestMarshaller(new Marshaller<>(request))
                .setResponseMarshaller(new Marshaller<>(reply))
                .build();
    }

    private record Marshaller<T extends MessageLite>(Parser<T> parser) implements MethodDescriptor.Marshaller<T> {
        @Override
        public InputStream stream(T value) {
            return new ByteArrayInputStream(value.toByteArray());
        }

        @Override
        public T parse(InputStream stream) {
            try {
                return parser.parseFrom(stream);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }
}
