package io.nowcalls;

import java.net.IDN;
import java.util.regex.Pattern;

/** HOST, HOST:PORT or [IPV6]:PORT; without a port it is the default port. */
final class Address {
    static final int DEFAULT_PORT = 18730;

    private static final Pattern IPV6 = Pattern.compile("[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%.+)?");
    private static final Pattern NUMBERS = Pattern.compile("[0-9.]+");

    final String host;
    final int port;

    private Address(String host, int port) {
        this.host = host;
        this.port = port;
    }

    static Address parse(String text) {
        String host = text;
        String port = String.valueOf(DEFAULT_PORT);
        int colon = text.indexOf(':');
        if (text.startsWith("[") && text.indexOf(']') > 0) {
            host = text.substring(1, text.indexOf(']'));
            String rest = text.substring(text.indexOf(']') + 1);
            port = rest.isEmpty() ? port : rest.startsWith(":") ? rest.substring(1) : rest;
        } else if (colon >= 0 && colon == text.lastIndexOf(':')) {
            host = text.substring(0, colon);
            port = text.substring(colon + 1);
        }
        String wrong = "address '" + text + "' is not HOST:PORT or [IPV6]:PORT";
        if (host.contains("/") || (host.contains(":") && !IPV6.matcher(host).matches())) {
            throw new BadRequestException(wrong + "; it has no http://");
        }
        if (!isHost(host) || !port.matches("[0-9]{1,5}")) {
            throw new BadRequestException(wrong);
        }
        int number = Integer.parseInt(port);
        if (number < 1 || number > 65535) {
            throw new BadRequestException(wrong);
        }
        return new Address(host, number);
    }

    /** Whether it is written as numbers, so that no resolver is asked. */
    static boolean isNumeric(String host) {
        return host.contains(":") || NUMBERS.matcher(host).matches();
    }

    static boolean isHost(String name) {
        if (name.contains(":")) {
            return IPV6.matcher(name).matches();
        }
        String bare = name.endsWith(".") ? name.substring(0, name.length() - 1) : name;
        if (bare.isEmpty() || bare.indexOf('\0') >= 0 || bare.contains(" ")) {
            return false;
        }
        try {
            for (String label : IDN.toASCII(bare).split("\\.", -1)) {
                if (label.isEmpty() || label.length() > 63) {
                    return false;
                }
            }
            return true;
        } catch (IllegalArgumentException notOne) {
            return false;
        }
    }

    @Override
    public String toString() {
        return host + ":" + port;
    }
}
