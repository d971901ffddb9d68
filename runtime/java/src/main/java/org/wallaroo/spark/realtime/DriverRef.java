package org.wallaroo.spark.realtime;

import java.io.IOException;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkEnv;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.util.RpcUtils;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/** The way from an executor to {@link GateEndpoint}: Spark's own connection, with its authentication and encryption. */
final class DriverRef implements RemoteCalls.Driver {
    private static final ClassTag<byte[]> BYTES = ClassTag$.MODULE$.apply(byte[].class);
    private static final long LONGEST_NS = TimeUnit.SECONDS.toNanos(10);
    private static final int PARTS = 4; // of the time after which Spark takes a call for lost

    private final RpcEndpointRef endpoint;

    private DriverRef(RpcEndpointRef endpoint) {
        this.endpoint = endpoint;
    }

    /** Returns the way to that of a query. */
    static DriverRef of(Settings settings) {
        SparkEnv spark = SparkEnv.get();
        return new DriverRef(RpcUtils.makeDriverRef(GateEndpoint.name(settings), spark.conf(), spark.rpcEnv()));
    }

    @Override
    public byte[] ask(byte[] request) throws IOException, InterruptedException {
        return endpoint.askSync(request, BYTES);
    }

    @Override
    public void send(byte[] request) {
        endpoint.send(request);
    }

    @Override
    public long longestNs() {
        long lost = RpcUtils.askRpcTimeout(SparkEnv.get().conf()).duration().toNanos();
        return Math.min(LONGEST_NS, lost / PARTS);
    }
}
