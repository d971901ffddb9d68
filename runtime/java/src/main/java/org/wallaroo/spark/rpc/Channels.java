package org.wallaroo.spark.rpc;

import com.google.protobuf.MessageLite;
import com.google.protobuf.Parser;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ConnectivityState;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.channel.EventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.unix.DomainSocketAddress;
import io.grpc.netty.shaded.io.netty.handler.ssl.SslContext;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.concurrent.TimeUnit;

/** Opens gRPC channels over Unix sockets and TCP, and describes the gRPC methods that Spark's tasks call. */
public final class Channels {
    /** Number of replies that a call requests in advance: gRPC sends no reply that the caller has not requested. */
    public static final int REPLIES = 1024;
    private static final int WINDOW_BYTES = 16 << 20;
    private static final int MAX_MESSAGE_BYTES = 72 << 20; // a frame of 64 MiB, and the message around it
    private static final int SERVICE_MESSAGE_BYTES = 2 << 20;
    private static final int KEEPALIVE_S = 30; // the same as in the services and the clients in Python
    private static final int KEEPALIVE_ANSWER_S = 10;
    private static final int RECONNECT_MS = 250; // gRPC's own pauses grow to two minutes
    private static final CallOptions.Key<Boolean> BY_HAND = CallOptions.Key.createWithDefault("by hand", false);
    private static EventLoopGroup loop;

    private Channels() {}

    /** Opens a channel to a Unix socket. */
    public static ManagedChannel open(String path) {
        return built(NettyChannelBuilder.forAddress(new DomainSocketAddress(path))
                .channelType(EpollDomainSocketChannel.class)
                .usePlaintext()
                .overrideAuthority("localhost")
                .maxInboundMessageSize(MAX_MESSAGE_BYTES));
    }

    /**
     * Opens a channel to a gateway or an egress. The channel connects again and again while the service is away.
     *
     * @param address path of a Unix socket, or HOST:PORT of a service that {@link Credentials} knows
     */
    public static ManagedChannel service(String address) {
        ManagedChannel channel = isRemote(address) ? remote(address) : open(address);
        connectAgain(channel);
        return channel;
    }

    /** Says whether the address of a service is HOST:PORT, and not the path of a Unix socket. */
    static boolean isRemote(String address) {
        return !address.startsWith("/");
    }

    private static ManagedChannel remote(String address) {
        NettyChannelBuilder builder = NettyChannelBuilder.forTarget("dns:///" + address)
                .channelType(EpollSocketChannel.class)
                .proxyDetector(target -> null)
                .keepAliveTime(KEEPALIVE_S, TimeUnit.SECONDS)
                .keepAliveTimeout(KEEPALIVE_ANSWER_S, TimeUnit.SECONDS)
                .maxInboundMessageSize(SERVICE_MESSAGE_BYTES)
                .intercept(Credentials.interceptor(address));
        SslContext authority = Credentials.authority(address);
        return built(authority == null ? builder.usePlaintext() : builder.sslContext(authority));
    }

    private static ManagedChannel built(NettyChannelBuilder builder) {
        return builder.eventLoopGroup(loop())
                .directExecutor()
                .flowControlWindow(WINDOW_BYTES)
                .intercept(new Asking())
                .build();
    }

    private static void connectAgain(ManagedChannel channel) {
        ConnectivityState state = channel.getState(false);
        if (state == ConnectivityState.TRANSIENT_FAILURE) {
            later(RECONNECT_MS, channel::resetConnectBackoff);
        }
        if (state != ConnectivityState.SHUTDOWN) {
            channel.notifyWhenStateChanged(state, () -> connectAgain(channel));
        }
    }

    /** Runs an action in gRPC's thread after some milliseconds. The action must not wait. */
    static void later(long milliseconds, Runnable action) {
        loop().schedule(action, milliseconds, TimeUnit.MILLISECONDS);
    }

    /** Returns options for a call that requests its replies itself. For other calls the channel requests them. */
    static CallOptions byHand() {
        return CallOptions.DEFAULT.withOption(BY_HAND, true);
    }

    /**
     * Requests the replies of calls: {@link #REPLIES} in advance, and one more for each reply of a long stream.
     *
     * <p>A call always ends with UNAVAILABLE if its connection is lost, before, during or after its start.
     */
    private static final class Asking implements ClientInterceptor {
        @Override
        public <Q, R> ClientCall<Q, R> interceptCall(MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
            boolean asks = !options.getOption(BY_HAND);
            return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
                @Override
                public void start(Listener<R> listener, Metadata headers) {
                    super.start(new SimpleForwardingClientCallListener<>(listener) {
                        @Override
                        public void onMessage(R reply) {
                            if (asks) {
                                request(1);
                            }
                            super.onMessage(reply);
                        }

                        @Override
                        public void onClose(Status status, Metadata trailers) {
                            super.onClose(named(status), trailers);
                        }
                    }, headers);
                    if (asks) {
                        request(REPLIES);
                    }
                }
            };
        }
    }

    /** Returns a status in which a lost connection is always UNAVAILABLE: gRPC reports a closed channel as UNKNOWN. */
    static Status named(Status status) {
        boolean isLost = status.getCode() == Status.Code.UNKNOWN && status.getCause() instanceof IOException;
        return isLost ? Status.UNAVAILABLE.withDescription(status.getDescription()).withCause(status.getCause()) : status;
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

    /** Describes a method of a gRPC service by its full name, and the parsers of its messages. */
    public static <Q extends MessageLite, R extends MessageLite> MethodDescriptor<Q, R> method(
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
