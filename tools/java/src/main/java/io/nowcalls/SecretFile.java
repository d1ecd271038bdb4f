package io.nowcalls;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The secret of the environment: the first line of a file that only its owner may read. */
final class SecretFile {
    private static final String VARIABLE = "NOWCALLS_SECRET_FILE";
    private static final int FILE_BYTES_MAX = 4096;

    private SecretFile() {}

    /** null: there is none. Throws BadRequestException. */
    static Secret read(Map<String, String> environment) {
        String name = environment.getOrDefault(VARIABLE, "");
        if (name.isEmpty()) {
            return null;
        }
        Path file = Path.of(name);
        byte[] data;
        try (InputStream in = Files.newInputStream(file)) {
            if (!isPrivate(file)) {
                throw new BadRequestException(
                        VARIABLE + ": others than its owner may read or write " + file
                                + ", which has a secret; run: chmod 600 " + file);
            }
            data = in.readNBytes(FILE_BYTES_MAX + 1);
        } catch (IOException error) {
            throw new BadRequestException(Pem.cannotRead(VARIABLE, file, error));
        }
        if (data.length > FILE_BYTES_MAX) {
            throw new BadRequestException(
                    VARIABLE + ": " + file + " has more than " + FILE_BYTES_MAX + " bytes");
        }
        String line = new String(data, StandardCharsets.UTF_8).split("\n", 2)[0];
        line = line.endsWith("\r") ? line.substring(0, line.length() - 1) : line;
        if (line.isEmpty()) {
            throw new BadRequestException(
                    VARIABLE + ": " + file + " has no secret in its first line");
        }
        // What is no UTF-8 became U+FFFD.
        String wrong = line.indexOf('\uFFFD') >= 0 ? "is no UTF-8" : Secret.wrong(line);
        if (wrong != null) {
            throw new BadRequestException(VARIABLE + ": the first line of " + file + " " + wrong);
        }
        return Secret.of(line);
    }

    /** Kubernetes gives a mounted secret to root and to the group of fsGroup. */
    private static boolean isPrivate(Path file) throws IOException {
        Map<String, Object> of;
        try {
            of = Files.readAttributes(file, "unix:mode,uid,gid");
        } catch (UnsupportedOperationException | IllegalArgumentException noUnix) {
            return true;
        }
        int mode = (Integer) of.get("mode");
        int owner = (Integer) of.get("uid");
        return isPrivate(mode, owner, of.get("gid"), groups());
    }

    static boolean isPrivate(int mode, int owner, Object group, List<String> ownGroups) {
        int others = mode & 077;
        boolean isOwnGroup = owner == 0 && ownGroups.contains(String.valueOf(group));
        return others == 0 || (others == 040 && isOwnGroup);
    }

    /** Those of this process. */
    private static List<String> groups() {
        List<String> groups = new ArrayList<>();
        try {
            for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
                if (line.startsWith("Gid:") || line.startsWith("Groups:")) {
                    groups.addAll(List.of(line.split("\\s+")));
                }
            }
        } catch (IOException noLinux) {
            return groups;
        }
        return groups;
    }
}
