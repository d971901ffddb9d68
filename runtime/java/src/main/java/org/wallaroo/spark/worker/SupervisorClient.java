package org.wallaroo.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.rpc.ReplyQueue;

/** Sends requests to the supervisor of a worker; {@code worker/control.py} defines requests and replies. */
final class SupervisorClient {
    private final Path directory;
    private final Runnable startAgain;

    /**
     * Makes a client of a supervisor.
     *
     * @param directory of the worker
     * @param startAgain starts a supervisor that has ended
     */
    SupervisorClient(Path directory, Runnable startAgain) {
        this.directory = directory;
        this.startAgain = startAgain;
    }

    /** A serving process of a worker. */
    record Process(int generation, long pid) {}

    /** Waits until a process of the worker serves, and returns it. */
    Process await() {
        return ready(ask("op", "wait"));
    }

    /** Waits until a new process of the worker serves, since the streams to a process broke, and returns it. */
    Process recover(int generation) {
        return ready(ask("op", "recover", "generation", generation));
    }

    /** Waits for the end of a process, and returns how it ended; null if nobody knows. */
    JsonNode ending(int generation) {
        JsonNode found = ask("op", "ending", "generation", generation).get("ending");
        return found == null || found.isNull() ? null : found;
    }

    /** Kills a process. If it is excused, its end does not count against the budget of restarts. */
    void kill(int generation, String reason, boolean isExcused) {
        ask("op", "kill", "generation", generation, "reason", reason, "is_excused", isExcused);
    }

    /** Ends worker and supervisor. */
    void stop() {
        try {
            exchange("op", "stop");
        } catch (IOException error) {
            return; // it has ended
        }
    }

    /** Takes the latest ends of processes off the budget of restarts, because their cause is known and dealt with. */
    void excuse(int count) {
        ask("op", "excuse", "count", count);
    }

    private Process ready(JsonNode reply) {
        if (reply.path("state").asText().equals("ready")) {
            return new Process(reply.path("generation").asInt(), reply.path("pid").asLong());
        }
        JsonNode findings = reply.path("diagnostics");
        if (findings.size() > 0) {
            throw OperatorFailure.found(findings);
        }
        throw refused("the application is being stopped");
    }

    private JsonNode ask(Object... request) {
        try {
            return exchange(request);
        } catch (ClosedByInterruptException error) { // no fault of the supervisor
            throw ReplyQueue.interrupted(error);
        } catch (IOException error) {
            startAgain.run();
        }
        try {
            return exchange("op", "wait"); // the new supervisor counts processes from 1
        } catch (IOException error) {
            throw refused("its supervisor is gone: " + error.getMessage());
        }
    }

    private JsonNode exchange(Object... request) throws IOException {
        var address = UnixDomainSocketAddress.of(directory.resolve("supervisor.sock"));
        try (SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX)) {
            channel.connect(address);
            ByteBuffer line = ByteBuffer.wrap((Json.object(request) + "\n").getBytes(StandardCharsets.UTF_8));
            while (line.hasRemaining()) {
                channel.write(line);
            }
            var reader = new BufferedReader(new InputStreamReader(Channels.newInputStream(channel), StandardCharsets.UTF_8));
            String reply = reader.readLine();
            if (reply == null) {
                throw new IOException("it closed the connection");
            }
            return Json.parse(reply);
        }
    }

    private OperatorFailure refused(String reason) {
        String worker = directory.getFileName().toString().replaceFirst("-[^-]*$", "");
        String fix = "run it again: it continues from the checkpoint; --restart on-failure of `wallaroo submit` does so";
        return OperatorFailure.of("W401", "worker", worker, "reason", reason, "fix", fix);
    }
}
