package org.wallaroo.spark.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Path;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SupervisorClientTest {
    private static final int LONGEST_MS = 30;
    private final AtomicInteger starts = new AtomicInteger();
    @TempDir
    private Path directory;

    @RepeatedTest(20)
    void testAnInterruptedTaskStartsNoSupervisor() throws Exception {
        try (ServerSocketChannel silent = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            silent.bind(UnixDomainSocketAddress.of(directory.resolve("supervisor.sock")));
            Thread task = Thread.currentThread();
            int pause = new Random().nextInt(LONGEST_MS);
            Thread canceller = new Thread(() -> {
                try {
                    Thread.sleep(pause);
                } catch (InterruptedException error) {
                    return;
                }
                task.interrupt();
            });
            canceller.start();
            assertThrows(IllegalStateException.class, () -> supervisor().await());
            assertTrue(Thread.interrupted(), "Spark looks at it");
            canceller.join();
        }
        assertEquals(0, starts.get());
    }

    @Test
    void testOneThatIsGoneIsStartedOnce() {
        assertThrows(RuntimeException.class, () -> supervisor().await());
        assertEquals(1, starts.get());
    }

    private SupervisorClient supervisor() {
        return new SupervisorClient(directory, starts::incrementAndGet);
    }
}
