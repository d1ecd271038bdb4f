package io.nowcalls;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A CA in a directory of its own, made by openssl(1). Files are PEM. */
final class Authority {
    final Path file;
    private final Path dir;
    private int issued;

    Authority(Path dir) throws Exception {
        this.dir = Files.createDirectories(dir);
        this.file = dir.resolve("ca.pem");
        Path key = newKey("ca");
        String subject = "/CN=CA " + dir.getFileName();
        openssl("req", "-x509", "-key", key, "-out", file, "-days", 9, "-subj", subject);
    }

    /** [certificate, key]. names: subjectAltName, like "DNS:a.test,IP:127.0.0.1"; "": none. */
    Path[] issue(String names) throws Exception {
        String stem = "leaf-" + issued++;
        Path key = newKey(stem);
        Path request = dir.resolve(stem + ".csr");
        Path certificate = dir.resolve(stem + ".pem");
        Path extensions = dir.resolve(stem + ".ext");
        Files.writeString(extensions, names.isEmpty() ? "" : "subjectAltName=" + names + "\n");
        // A common name counts for nothing.
        openssl("req", "-new", "-key", key, "-out", request, "-subj", "/CN=localhost");
        openssl(
                "x509", "-req", "-in", request, "-out", certificate, "-days", 9, "-CA", file,
                "-CAkey", dir.resolve("ca.key"), "-CAcreateserial", "-extfile", extensions);
        return new Path[] {certificate, key};
    }

    Path newKey(String stem) throws Exception {
        Path key = dir.resolve(stem + ".key");
        String curve = "ec_paramgen_curve:P-256";
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", curve, "-out", key);
        return key;
    }

    static void openssl(Object... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of("openssl"));
        for (Object argument : arguments) {
            command.add(argument.toString());
        }
        run(command);
    }

    static String run(List<String> command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes());
        if (process.waitFor() != 0) {
            throw new AssertionError(command + ": " + output);
        }
        return output;
    }
}
