package io.nowcalls;

import java.net.InetAddress;
import java.net.UnknownHostException;

/** Finds the addresses of a name; on a thread of its own unless it is written as numbers. */
final class Lookup {
    final Address address;
    volatile InetAddress[] found;
    volatile String failure;
    volatile boolean done;

    /** wake: called on the other thread when it is done. */
    Lookup(Address address, Runnable wake) {
        this.address = address;
        if (Address.isNumeric(address.host)) {
            find();
            return;
        }
        Runnable finder =
                () -> {
                    find();
                    wake.run();
                };
        Thread thread = new Thread(null, finder, "nowcalls-name", 0, false);
        thread.setDaemon(true);
        thread.start();
    }

    private void find() {
        try {
            found = InetAddress.getAllByName(address.host);
        } catch (UnknownHostException error) {
            failure = error.getMessage().replace(address.host + ": ", "");
        } catch (RuntimeException error) {
            failure = String.valueOf(error.getMessage());
        }
        done = true;
    }
}
