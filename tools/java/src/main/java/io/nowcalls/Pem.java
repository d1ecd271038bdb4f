package io.nowcalls;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.Collection;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Certificates and keys of PEM files. All that is wrong with one is a BadRequestException. */
final class Pem {
    private static final String CERTIFICATE = "tlsCertificate or NOWCALLS_TLS_CLIENT_CERT";
    private static final String KEY = "tlsKey or NOWCALLS_TLS_CLIENT_KEY";
    private static final Pattern PRIVATE =
            Pattern.compile("-----BEGIN (.*?)PRIVATE KEY-----(.*?)-----END", Pattern.DOTALL);
    private static final Map<String, String> SIGNATURES =
            Map.of("RSA", "SHA256withRSA", "EC", "SHA256withECDSA", "EdDSA", "EdDSA");

    private Pem() {}

    static Collection<? extends Certificate> certificates(Path file) {
        String wrong = "tls: " + file + " is no PEM file of certificates";
        try (InputStream in = Files.newInputStream(file)) {
            Collection<? extends Certificate> read =
                    CertificateFactory.getInstance("X.509").generateCertificates(in);
            if (read.isEmpty()) {
                throw new BadRequestException(wrong);
            }
            return read;
        } catch (CertificateException error) {
            throw new BadRequestException(wrong + ": " + error.getMessage());
        } catch (IOException error) {
            throw new BadRequestException(cannotRead("tls", file, error));
        }
    }

    static X509Certificate[] chain(Path certificate, Path key) {
        try {
            return certificates(certificate).toArray(new X509Certificate[0]);
        } catch (BadRequestException error) {
            throw noPair(certificate, key, error.getMessage());
        }
    }

    static PrivateKey key(Path file, Certificate leaf, Path certificate) {
        String text;
        try {
            text = Files.readString(file, StandardCharsets.ISO_8859_1);
        } catch (IOException error) {
            throw new BadRequestException(cannotRead(KEY, file, error));
        }
        Matcher found = PRIVATE.matcher(text);
        if (!found.find()) {
            throw noPair(certificate, file, "there is no private key");
        }
        if (found.group(1).contains("ENCRYPTED") || found.group(2).contains("ENCRYPTED")) {
            throw new BadRequestException(
                    KEY + ": " + file + " has a passphrase; give a key without one");
        }
        if (!found.group(1).isEmpty()) { // RSA or EC of their own.
            throw new BadRequestException(
                    KEY + ": " + file + " is no PKCS #8 key; run: openssl pkcs8 -topk8 -nocrypt"
                            + " -in " + file + " -out NEW");
        }
        PrivateKey key = decode(found.group(2), file, certificate);
        if (!fits(key, leaf)) {
            throw new BadRequestException(
                    KEY + ": " + file + " is not the key of " + certificate);
        }
        return key;
    }

    static String cannotRead(String what, Path file, IOException error) {
        String reason = error instanceof NoSuchFileException ? "No such file or directory" : null;
        if (reason == null && error instanceof FileSystemException) {
            reason = ((FileSystemException) error).getReason();
        }
        return what + ": cannot read " + file + ": "
                + (reason != null ? reason : error.getClass().getSimpleName());
    }

    private static PrivateKey decode(String base64, Path file, Path certificate) {
        byte[] data;
        try {
            data = Base64.getMimeDecoder().decode(base64);
        } catch (IllegalArgumentException error) {
            throw noPair(certificate, file, "it is no base64");
        }
        for (String algorithm : SIGNATURES.keySet()) {
            try {
                KeyFactory factory = KeyFactory.getInstance(algorithm);
                return factory.generatePrivate(new PKCS8EncodedKeySpec(data));
            } catch (GeneralSecurityException another) {
                continue;
            }
        }
        throw noPair(certificate, file, "its key is of no kind that is known");
    }

    private static boolean fits(PrivateKey key, Certificate leaf) {
        try {
            Signature signature = Signature.getInstance(SIGNATURES.get(key.getAlgorithm()));
            byte[] data = {1, 2, 3};
            signature.initSign(key);
            signature.update(data);
            byte[] signed = signature.sign();
            signature.initVerify(leaf.getPublicKey());
            signature.update(data);
            return signature.verify(signed);
        } catch (GeneralSecurityException error) {
            return false;
        }
    }

    private static BadRequestException noPair(Path certificate, Path key, String why) {
        return new BadRequestException(
                CERTIFICATE + ": " + certificate + " and " + key + " are no PEM files of a"
                        + " certificate and its key: " + why);
    }
}
