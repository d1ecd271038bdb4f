package io.nowcalls;

import java.nio.charset.StandardCharsets;

/** Checks of texts that go to a server. */
final class Texts {
    private Texts() {}

    static int bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8).length;
    }

    static boolean hasSurrogates(String text) {
        return text.codePoints().anyMatch(c -> Character.getType(c) == Character.SURROGATE);
    }

    static boolean hasControls(String text) {
        return text.codePoints().anyMatch(Character::isISOControl);
    }

    /** A half of a surrogate pair would reach the server as a question mark. */
    static void checkUnicode(String what, String text) {
        if (hasSurrogates(text)) {
            throw new BadRequestException(what + " must not have lone surrogates");
        }
    }
}
