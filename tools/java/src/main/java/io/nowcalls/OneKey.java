package io.nowcalls;

import java.net.Socket;
import java.security.Principal;
import java.security.PrivateKey;
import java.security.cert.X509Certificate;
import java.util.Arrays;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.X509ExtendedKeyManager;

/**
 * Shows one certificate to every server that asks for one. Java's own key managers show none whose
 * authority the server does not name, so that the server could not say what is wrong with it.
 */
final class OneKey extends X509ExtendedKeyManager {
    private static final String ALIAS = "client";

    private final X509Certificate[] chain;
    private final PrivateKey key;

    OneKey(X509Certificate[] chain, PrivateKey key) {
        this.chain = chain;
        this.key = key;
    }

    @Override
    public String chooseEngineClientAlias(String[] types, Principal[] issuers, SSLEngine engine) {
        return Arrays.asList(types).contains(key.getAlgorithm()) ? ALIAS : null;
    }

    @Override
    public String chooseClientAlias(String[] types, Principal[] issuers, Socket socket) {
        return chooseEngineClientAlias(types, issuers, null);
    }

    @Override
    public String[] getClientAliases(String type, Principal[] issuers) {
        return new String[] {ALIAS};
    }

    @Override
    public X509Certificate[] getCertificateChain(String alias) {
        return chain.clone();
    }

    @Override
    public PrivateKey getPrivateKey(String alias) {
        return key;
    }

    @Override
    public String[] getServerAliases(String type, Principal[] issuers) {
        return null;
    }

    @Override
    public String chooseServerAlias(String type, Principal[] issuers, Socket socket) {
        return null;
    }
}
