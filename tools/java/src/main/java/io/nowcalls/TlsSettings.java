package io.nowcalls;

import java.nio.file.Path;
import java.util.Map;
import javax.net.ssl.SSLContext;

/** What settings and the environment say of TLS. Settings go before. */
final class TlsSettings {
    private static final String ON = "NOWCALLS_TLS";
    private static final String CA = "NOWCALLS_TLS_CA";
    private static final String CERTIFICATE = "NOWCALLS_TLS_CLIENT_CERT";
    private static final String KEY = "NOWCALLS_TLS_CLIENT_KEY";

    Boolean isOn; // null: as the environment says.
    Path ca;
    SSLContext context;
    Path certificate;
    Path key;
    String serverName;

    /** null: plain. Throws BadRequestException. */
    Tls make(Map<String, String> environment) {
        String given = given();
        if (serverName != null && (serverName.startsWith(".") || !Address.isHost(serverName))) {
            throw new BadRequestException(
                    "tlsServerName must be a host's name or address, not '" + serverName + "'");
        }
        if (context != null) {
            if (ca != null || certificate != null || key != null) {
                String twice = ca != null ? "tls(Path)" : given;
                throw new BadRequestException(
                        "tls is a context, so it must have what " + twice + " says itself");
            }
            return new Tls(null, null, null, serverName, context);
        }
        if (Boolean.FALSE.equals(isOn)) {
            if (given != null) {
                throw new BadRequestException(given + " is set, but tls is false");
            }
            return null;
        }
        if (isOn == null && given == null && !isOn(environment)) {
            return null;
        }
        Path authorities = or(ca, environment.get(CA));
        Path shown = or(certificate, environment.get(CERTIFICATE));
        Path shownKey = or(key, environment.get(KEY));
        if ((shown == null) != (shownKey == null)) {
            String one = "tlsCertificate or " + CERTIFICATE;
            String other = "tlsKey or " + KEY;
            throw new BadRequestException(
                    (shown != null ? one + " is set without " + other : other + " is set without "
                            + one) + "; give both, or none");
        }
        return new Tls(authorities, shown, shownKey, serverName, null);
    }

    private String given() {
        return certificate != null ? "tlsCertificate"
                : key != null ? "tlsKey"
                : serverName != null ? "tlsServerName"
                : null;
    }

    private static boolean isOn(Map<String, String> environment) {
        String says = environment.getOrDefault(ON, "");
        if (!says.isEmpty() && !says.equals("on") && !says.equals("off")) {
            throw new BadRequestException(ON + ": '" + says + "' is neither on nor off");
        }
        boolean hasFile =
                or(null, environment.get(CA)) != null
                        || or(null, environment.get(CERTIFICATE)) != null
                        || or(null, environment.get(KEY)) != null;
        return says.equals("on") || (says.isEmpty() && hasFile);
    }

    private static Path or(Path setting, String variable) {
        if (setting != null) {
            return setting;
        }
        return variable == null || variable.isEmpty() ? null : Path.of(variable);
    }
}
