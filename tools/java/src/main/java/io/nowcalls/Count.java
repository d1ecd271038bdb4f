package io.nowcalls;

import java.util.Locale;

/** What a session counts. */
enum Count {
    CONNECTS,
    DISCONNECTS,
    KEPT,
    LOST,
    CANCELLED,
    ASKED_AGAIN;

    String word() {
        return name().toLowerCase(Locale.ROOT);
    }
}
