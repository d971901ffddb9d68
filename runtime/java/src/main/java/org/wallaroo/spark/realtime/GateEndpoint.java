package org.wallaroo.spark.realtime;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Consumer;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.rpc.RpcCallContext;
import org.apache.spark.rpc.RpcEndpoint;
import org.apache.spark.rpc.RpcEnv;
import scala.Function1;
import scala.PartialFunction;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/**
 * Serves the tasks of a query on executors, at the driver's end of Spark's RPC.
 *
 * <p>Requests and replies are bytes, of which nothing is deserialized to objects. Replies come later, from threads of
 * our own: no thread of Spark's waits.
 */
final class GateEndpoint implements RpcEndpoint {
    private static final Map<String, GateEndpoint> OPEN = new ConcurrentHashMap<>();

    private final RpcEnv environment;
    private final GateService service;
    private final ExecutorService threads = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task, "wallaroo-handover");
        thread.setDaemon(true);
        return thread;
    });

    private GateEndpoint(RpcEnv environment, GateService service) {
        this.environment = environment;
        this.service = service;
    }

    /** Returns the name of that of a query, which the driver and its executors work out alike. */
    static String name(Settings settings) {
        return "wallaroo-" + UUID.nameUUIDFromBytes(settings.text().getBytes(StandardCharsets.UTF_8));
    }

    /** Serves the tasks of a query, unless they run in this virtual machine. */
    static void open(Settings settings) {
        if (SparkContext.getOrCreate().isLocal()) {
            return;
        }
        OPEN.computeIfAbsent(settings.text(), text -> {
            RpcEnv environment = SparkEnv.get().rpcEnv();
            GateService service = new GateService(Engine.gate(settings), Wire.PIECE_BYTES);
            GateEndpoint made = new GateEndpoint(environment, service);
            environment.setupEndpoint(name(settings), made);
            return made;
        });
    }

    /** Ends that of a query that has stopped. */
    static void close(Settings settings) {
        GateEndpoint found = OPEN.remove(settings.text());
        if (found != null) {
            found.stop();
            found.threads.shutdown();
        }
    }

    @Override
    public RpcEnv rpcEnv() {
        return environment;
    }

    @Override
    public PartialFunction<Object, BoxedUnit> receive() {
        return onBytes(service::reply);
    }

    @Override
    public PartialFunction<Object, BoxedUnit> receiveAndReply(RpcCallContext context) {
        return onBytes(request -> context.reply(service.reply(request)));
    }

    private PartialFunction<Object, BoxedUnit> onBytes(Consumer<byte[]> action) {
        return new AbstractPartialFunction<>() {
            @Override
            public boolean isDefinedAt(Object message) {
                return message instanceof byte[];
            }

            @Override
            @SuppressWarnings("unchecked")
            public <A1, B1> B1 applyOrElse(A1 message, Function1<A1, B1> otherwise) {
                if (!(message instanceof byte[] request)) {
                    return otherwise.apply(message);
                }
                threads.execute(() -> action.accept(request));
                return (B1) BoxedUnit.UNIT;
            }
        };
    }
}
