package org.wallaroo.spark.worker;

import com.google.protobuf.ByteString;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.ServerSocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.StageSettings;
import org.wallaroo.spark.rpc.Channels;
import org.wallaroo.spark.rpc.FakeServer;
import wallaroo.worker.v1.WorkerOuterClass.InitReply;
import wallaroo.worker.v1.WorkerOuterClass.InitRequest;
import wallaroo.worker.v1.WorkerOuterClass.Reply;
import wallaroo.worker.v1.WorkerOuterClass.Request;
import wallaroo.worker.v1.WorkerOuterClass.Stage;

/** A worker and its supervisor, on real sockets. A test chooses their answers. */
public final class FakeWorker implements AutoCloseable {
    private static final int BUCKETS = 4;

    private final Path directory;
    private final FakeServer server;
    private final ServerSocketChannel supervisor;
    private final CountDownLatch silence = new CountDownLatch(1);
    private volatile boolean isSilent;
    private volatile int endpoints = 1;
    private volatile InitReply answer = InitReply.getDefaultInstance();
    private volatile Status refusal = Status.OK;
    private volatile Map<String, Object> ending;
    private final List<String> asked = new CopyOnWriteArrayList<>(); // operations of its supervisor
    private volatile long pid = ProcessHandle.current().pid();
    private volatile int generation = 1;

    public FakeWorker(Path directory, Supplier<FakeServer.Stream<Request, Reply>> process,
            Supplier<FakeServer.Stream<Request, Reply>> state) throws IOException {
        this.directory = directory;
        FakeServer.Stream<InitRequest, InitReply> init = (request, call) -> {
            if (isSilent) {
                silence.countDown();
                return;
            }
            if (!refusal.isOk()) {
                call.close(refusal, new Metadata());
                return;
            }
            InitReply.Builder reply = answer.toBuilder().addEndpoints("unix:" + directory.resolve("worker.sock"));
            for (int i = 1; i < endpoints; i++) {
                reply.addEndpoints("unix:" + directory.resolve("worker-" + i + ".sock"));
            }
            call.sendMessage(reply.build());
            call.close(Status.OK, new Metadata());
        };
        MethodDescriptor<InitRequest, InitReply> handshake = Channels.method("wallaroo.worker.v1.Worker/Init",
                MethodDescriptor.MethodType.UNARY, InitRequest.parser(), InitReply.parser());
        ServerServiceDefinition.Builder service = ServerServiceDefinition.builder("wallaroo.worker.v1.Worker");
        FakeServer.add(service, handshake, () -> init);
        FakeServer.add(service, WorkerChannel.PROCESS, process);
        FakeServer.add(service, WorkerChannel.PROCESS_STATE, state);
        server = new FakeServer(directory.resolve("worker.sock"), service);
        supervisor = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        supervisor.bind(UnixDomainSocketAddress.of(directory.resolve("supervisor.sock")));
        Thread thread = new Thread(this::supervise, "fake-supervisor");
        thread.setDaemon(true);
        thread.start();
    }

    private void supervise() {
        try {
            while (true) {
                try (var peer = supervisor.accept()) {
                    var input = new InputStreamReader(java.nio.channels.Channels.newInputStream(peer), StandardCharsets.UTF_8);
                    asked.add(Json.parse(new BufferedReader(input).readLine()).get("op").asText());
                    if (asked.get(asked.size() - 1).equals("recover")) {
                        generation++;
                    }
                    String reply = Json.object("state", "ready", "generation", generation, "pid", pid, "ending", ending);
                    peer.write(ByteBuffer.wrap((reply + "\n").getBytes(StandardCharsets.UTF_8)));
                }
            }
        } catch (AsynchronousCloseException end) {
            return; // the test has ended
        } catch (IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    /** Returns the settings of a stage that this worker serves. */
    public StageSettings settings() {
        return settings(InitRequest.getDefaultInstance());
    }

    StageSettings settings(InitRequest handshake) {
        String init = Base64.getEncoder().encodeToString(handshake.toByteArray());
        return Json.read(Json.parse(Json.object("worker", "main", "worker_directory", directory.toString(), "init", init,
                "deadline_ms", 20_000, "flush_bytes", 8 << 20)), StageSettings.class);
    }

    /** Lets the worker report so many endpoints, which all lead to the first one. */
    public void haveEndpoints(int count) throws IOException {
        endpoints = count;
        for (int i = 1; i < count; i++) {
            Files.createSymbolicLink(directory.resolve("worker-" + i + ".sock"), directory.resolve("worker.sock"));
        }
    }

    /** Lets the worker answer handshakes with a reply, to which its endpoints are added. */
    void answer(InitReply reply) {
        answer = reply;
    }

    /** Lets the worker end handshakes with a status. With OK it answers them. */
    void refuse(Status status) {
        refusal = status;
    }

    /** Lets the supervisor report this end of the worker's process. */
    void haveEnded(Map<String, Object> how) {
        ending = how;
    }

    /** Lets a process of this id be the worker's process with this number. */
    void isProcess(int number, long id) {
        generation = number;
        pid = id;
    }

    /** Returns the operations that the supervisor was asked for. */
    List<String> asked() {
        return asked;
    }

    /** Lets the worker give no answer to handshakes, or answer them again. */
    void beSilent(boolean silent) {
        isSilent = silent;
    }

    /** Waits for a handshake that gets no answer. */
    void awaitSilence() throws InterruptedException {
        silence.await();
    }

    public static Stage.Builder stage(String id) {
        return Stage.newBuilder().setId(id).setBucketCount(BUCKETS).setFrameBytes(1 << 20);
    }

    public static ByteString bytes(byte[] frame) {
        return ByteString.copyFrom(frame);
    }

    @Override
    public void close() throws IOException {
        supervisor.close();
        server.close();
    }
}
