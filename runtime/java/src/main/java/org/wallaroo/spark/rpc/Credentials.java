package org.wallaroo.spark.rpc;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.netty.shaded.io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.shaded.io.netty.handler.ssl.SslContext;
import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import javax.net.ssl.SSLException;
import org.wallaroo.spark.query.OperatorFailure;

/**
 * The credentials for remote services. Spark serializes them with the tasks, to take them to the executors.
 *
 * <p>A token must not be in the settings of a query: these are text, which Spark shows in plans, logs and its web
 * interface.
 */
public final class Credentials {
    private static final Metadata.Key<String> AUTHORIZATION =
            Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);
    private static final Map<String, Credentials> KNOWN = new ConcurrentHashMap<>();

    private final String token;
    private final String authority;

    private Credentials(String token, String authority) {
        this.token = token;
        this.authority = authority;
    }

    /**
     * Sets the credentials for calls of a service. This must happen before a query that uses the service begins.
     *
     * @param address HOST:PORT of the service
     * @param token that each call carries
     * @param authority certificates (PEM) that verify the certificate of the service; empty if the service has no TLS
     */
    public static void put(String address, String token, String authority) {
        KNOWN.put(address, new Credentials(token, authority));
    }

    /** Returns all credentials of this virtual machine, for tasks: token and certificates, by address. */
    public static HashMap<String, String[]> all() {
        HashMap<String, String[]> found = new HashMap<>();
        KNOWN.forEach((address, each) -> found.put(address, new String[] {each.token, each.authority}));
        return found;
    }

    /** Adds the credentials that {@link #all} has returned in another virtual machine. */
    public static void putAll(Map<String, String[]> given) {
        given.forEach((address, each) -> put(address, each[0], each[1]));
    }

    /** Returns the interceptor that adds the token of a service to each call. */
    static ClientInterceptor interceptor(String address) {
        return new ClientInterceptor() {
            @Override
            public <Q, R> ClientCall<Q, R> interceptCall(
                    MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
                return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
                    @Override
                    public void start(Listener<R> listener, Metadata headers) {
                        headers.put(AUTHORIZATION, "Bearer " + known(address).token);
                        super.start(listener, headers);
                    }
                };
            }
        };
    }

    /** Returns the TLS context that verifies the certificate of a service; null if the service has no TLS. */
    static SslContext authority(String address) {
        String pem = known(address).authority;
        try {
            return pem.isEmpty() ? null : GrpcSslContexts.forClient()
                    .trustManager(new ByteArrayInputStream(pem.getBytes(StandardCharsets.US_ASCII)))
                    .build();
        } catch (SSLException | IllegalArgumentException error) {
            throw OperatorFailure.of("R642", "service", "service", "address", address, "reason",
                    "the certificates of spark.wallaroo.service.tlsCa cannot be used: " + error.getMessage());
        }
    }

    private static Credentials known(String address) {
        Credentials found = KNOWN.get(address);
        if (found == null) {
            throw OperatorFailure.of("I901", "reason", "the driver has given no token for " + address);
        }
        return found;
    }
}
