package io.nowcalls;

import java.io.EOFException;
import java.io.IOException;
import java.net.IDN;
import java.net.SocketException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLPeerUnverifiedException;
import javax.net.ssl.TrustManagerFactory;

/**
 * How a client makes sure of its server, and words for what fails.
 *
 * <p>Thread: the one that dials.
 */
final class Tls {
    private static final String ALPN = "nowcalls/1";
    private static final int DNS_NAME = 2; // Of a subject alternative name.
    private static final String ALERT = "Received fatal alert: ";
    private static final String REFUSED = "it refuses the client's certificate";
    private static final String VERSIONS =
            "it speaks other versions of TLS; 1.2 and 1.3 are spoken here";
    private static final Map<String, String> ALERTS =
            Map.ofEntries(
                    Map.entry("protocol_version", VERSIONS),
                    Map.entry(
                            "certificate_required",
                            "it asks for a client certificate, and none was shown; set"
                                    + " tlsCertificate and tlsKey"),
                    Map.entry(
                            "handshake_failure",
                            "it refuses the handshake: no cipher suite in common, or it asks for a"
                                    + " client certificate"),
                    Map.entry("unknown_ca", REFUSED + ": it does not know the CA that signed it"),
                    Map.entry("certificate_expired", REFUSED + ": it has expired"),
                    Map.entry("bad_certificate", REFUSED),
                    Map.entry("certificate_revoked", REFUSED),
                    Map.entry("access_denied", REFUSED),
                    Map.entry("certificate_unknown", REFUSED),
                    Map.entry("unsupported_certificate", REFUSED),
                    Map.entry(
                            "no_application_protocol",
                            "it asks for another application protocol (ALPN) than " + ALPN));
    // Alerts about what the client shows. Before TLS 1.3 a server that misses a certificate says
    // handshake_failure, which may mean anything.
    private static final List<String> DENIALS =
            List.of(
                    "certificate_required",
                    "unknown_ca",
                    "access_denied",
                    "bad_certificate",
                    "certificate_expired",
                    "certificate_revoked",
                    "certificate_unknown",
                    "unsupported_certificate");

    private final Path ca; // null: the system's.
    private final Path certificate;
    private final Path key;
    private final String serverName; // null: the host of the address.
    private final SSLContext ownContext; // The program's.
    private SSLContext loaded;
    private List<Object> stamps;

    /** Throws BadRequestException for files that are wrong. */
    Tls(Path ca, Path certificate, Path key, String serverName, SSLContext context) {
        this.ca = ca;
        this.certificate = certificate;
        this.key = key;
        this.serverName = serverName;
        this.ownContext = context;
        context();
    }

    /** An engine for the next dial of this host. */
    SSLEngine engine(Address address) {
        String name = serverName != null ? serverName : address.host.split("%")[0]; // fe80::1%eth0.
        if (!name.contains(":")) {
            name = IDN.toASCII(name.endsWith(".") ? name.substring(0, name.length() - 1) : name);
        }
        SSLEngine engine = context().createSSLEngine(name, address.port);
        engine.setUseClientMode(true);
        SSLParameters parameters = engine.getSSLParameters();
        parameters.setEndpointIdentificationAlgorithm("HTTPS"); // It checks the name.
        parameters.setApplicationProtocols(new String[] {ALPN});
        if (ownContext == null) {
            parameters.setProtocols(new String[] {"TLSv1.3", "TLSv1.2"});
        }
        engine.setSSLParameters(parameters);
        return engine;
    }

    /** Java would take a common name where a certificate has no name of a host. */
    void check(SSLEngine engine) throws SSLException {
        if (Address.isNumeric(engine.getPeerHost())) {
            return; // Only an alternative name can have matched.
        }
        X509Certificate leaf = (X509Certificate) engine.getSession().getPeerCertificates()[0];
        try {
            Collection<List<?>> names = leaf.getSubjectAlternativeNames();
            if (names == null || names.stream().noneMatch(n -> n.get(0).equals(DNS_NAME))) {
                throw new SSLPeerUnverifiedException(
                        "No subject alternative name matching " + engine.getPeerHost());
            }
        } catch (CertificateException error) {
            throw new SSLException(error);
        }
    }

    /** For the next dial: files that have changed are read again. */
    private SSLContext context() {
        if (ownContext != null) {
            return ownContext;
        }
        List<Object> now = Arrays.asList(stamp(ca), stamp(certificate), stamp(key));
        if (loaded == null || !now.equals(stamps)) {
            loaded = load();
            stamps = now;
        }
        return loaded;
    }

    private SSLContext load() {
        try {
            TrustManagerFactory trusted =
                    TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trusted.init(ca == null ? null : authorities());
            KeyManager[] keys = certificate == null ? null : ownKeys();
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(keys, trusted.getTrustManagers(), null);
            return context;
        } catch (GeneralSecurityException | IOException error) {
            throw new BadRequestException("tls: " + error.getMessage());
        }
    }

    private KeyStore authorities() throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        for (Certificate one : Pem.certificates(ca)) {
            store.setCertificateEntry("ca-" + store.size(), one);
        }
        return store;
    }

    private KeyManager[] ownKeys() {
        X509Certificate[] chain = Pem.chain(certificate, key);
        return new KeyManager[] {new OneKey(chain, Pem.key(key, chain[0], certificate))};
    }

    private static Object stamp(Path file) {
        if (file == null) {
            return null;
        }
        try {
            BasicFileAttributes of = Files.readAttributes(file, BasicFileAttributes.class);
            return Arrays.asList(of.fileKey(), of.size(), of.lastModifiedTime());
        } catch (IOException error) {
            throw new BadRequestException(Pem.cannotRead("tls", file, error));
        }
    }

    /** Whether the server does not let the client's certificate in, or asks for one. */
    static boolean denies(Throwable error) {
        return error instanceof SSLException && DENIALS.contains(alert(error));
    }

    /**
     * What ended a connection.
     *
     * @param shaking or its dial, which speaks TLS
     */
    static String why(Throwable error, boolean shaking) {
        boolean isEnd = error instanceof EOFException || error instanceof SocketException;
        if (shaking && isEnd) {
            return "the server closed the connection in the TLS handshake; does it speak TLS?";
        }
        if (error instanceof EOFException) {
            return "the server closed the connection";
        }
        String text = String.valueOf(error.getMessage());
        if (!(error instanceof SSLException)) {
            return text;
        }
        String doubt = doubt(error);
        if (doubt != null) {
            return "its certificate is not believed: " + doubt;
        }
        if (text.contains("nrecognized SSL message")) {
            return "it does not speak TLS";
        }
        String words = ALERTS.get(alert(error));
        return words != null ? words : "TLS failed: " + text;
    }

    /** Why a certificate is not believed, or null. */
    private static String doubt(Throwable error) {
        if (error instanceof SSLPeerUnverifiedException) {
            return error.getMessage();
        }
        List<Throwable> causes = new ArrayList<>();
        for (Throwable at = error.getCause(); at != null && causes.size() < 9; at = at.getCause()) {
            causes.add(at);
        }
        boolean isDoubt = causes.stream().anyMatch(at -> at instanceof CertificateException);
        return isDoubt ? String.valueOf(causes.get(causes.size() - 1).getMessage()) : null;
    }

    private static String alert(Throwable error) {
        String text = String.valueOf(error.getMessage());
        int at = text.indexOf(ALERT);
        return at < 0 ? "" : text.substring(at + ALERT.length()).trim();
    }
}
