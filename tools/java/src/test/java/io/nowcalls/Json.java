package io.nowcalls;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads JSON into null, Boolean, Long, Double, String, List and Map. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static Object read(String text) {
        Json json = new Json(text);
        Object value = json.value();
        if (json.peek() != 0) {
            throw json.wrong();
        }
        return value;
    }

    private Object value() {
        switch (peek()) {
            case '{':
                return map();
            case '[':
                return list();
            case '"':
                return string();
            case 't':
                return word("true", true);
            case 'f':
                return word("false", false);
            case 'n':
                return word("null", null);
            default:
                return number();
        }
    }

    private Map<String, Object> map() {
        Map<String, Object> map = new LinkedHashMap<>();
        at++;
        while (peek() != '}') {
            if (!map.isEmpty()) {
                expect(',');
            }
            peek();
            String key = string();
            expect(':');
            map.put(key, value());
        }
        at++;
        return map;
    }

    private List<Object> list() {
        List<Object> list = new ArrayList<>();
        at++;
        while (peek() != ']') {
            if (!list.isEmpty()) {
                expect(',');
            }
            list.add(value());
        }
        at++;
        return list;
    }

    private String string() {
        expect('"');
        StringBuilder read = new StringBuilder();
        while (text.charAt(at) != '"') {
            char c = text.charAt(at++);
            if (c != '\\') {
                read.append(c);
                continue;
            }
            char escaped = text.charAt(at++);
            if (escaped == 'u') {
                read.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
                at += 4;
            } else {
                int known = "bfnrt".indexOf(escaped);
                read.append(known < 0 ? escaped : "\b\f\n\r\t".charAt(known));
            }
        }
        at++;
        return read.toString();
    }

    private Object number() {
        int begin = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        String number = text.substring(begin, at);
        if (number.isEmpty()) {
            throw wrong();
        }
        boolean isFloat = number.chars().anyMatch(c -> c == '.' || c == 'e' || c == 'E');
        return isFloat ? (Object) Double.valueOf(number) : (Object) Long.valueOf(number);
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw wrong();
        }
        at += word.length();
        return value;
    }

    /** The next character that is no space; 0 at the end. */
    private char peek() {
        while (at < text.length() && Character.isWhitespace(text.charAt(at))) {
            at++;
        }
        return at < text.length() ? text.charAt(at) : 0;
    }

    private void expect(char c) {
        if (peek() != c) {
            throw wrong();
        }
        at++;
    }

    private IllegalArgumentException wrong() {
        return new IllegalArgumentException("no JSON at " + at + " of " + text.length());
    }
}
