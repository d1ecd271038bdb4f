package io.nowcalls;

import java.nio.file.Files;
import java.nio.file.Path;

/** Where the files of the repository are. */
final class Trees {
    /** Of this source. */
    static final Path HERE = above(Path.of("").toAbsolutePath());

    /** That with the vectors: another one if NOWCALLS_ROOT says so. */
    static final Path ROOT = root();

    private Trees() {}

    private static Path root() {
        String named = System.getenv("NOWCALLS_ROOT");
        return named == null ? HERE : Path.of(named).toAbsolutePath();
    }

    private static Path above(Path directory) {
        Path at = directory;
        while (at != null && !Files.isDirectory(at.resolve("tools/java"))) {
            at = at.getParent();
        }
        return at;
    }
}
