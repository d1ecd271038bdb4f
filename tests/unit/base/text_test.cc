#include "base/text.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/utf8.h"

namespace nowcalls {
namespace {

TEST_CASE("UTF-8 is recognised in its shortest form only") {
  for (const char* good : {"", "plain", "\u00e9", "\u20ac", "\U0001f600", "\xf4\x8f\xbf\xbf"}) {
    CAPTURE(good);
    CHECK(IsUtf8(good));
  }
  for (const char* bad :
       {"\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf0\x80\x80\xaf",
        "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xff", "a\xe2\x82"}) {
    CAPTURE(bad);
    CHECK_FALSE(IsUtf8(bad));
  }
}

TEST_CASE("printable text holds no control characters of either set") {
  CHECK(IsPrintable("caf\u00e9 \u20ac"));
  CHECK(IsPrintable("\u00a0"));
  for (const char* bad : {"a\n", "\x7f", "\u0080", "\u009f", "\x1b[0m", "\xff"}) {
    CAPTURE(bad);
    CHECK_FALSE(IsPrintable(bad));
  }
  CHECK_FALSE(IsPrintable(std::string_view("a\0b", 3)));
}

TEST_CASE("blank text is empty, or has nothing but spaces, tabs and ends of lines") {
  CHECK(IsBlank(""));
  CHECK(IsBlank(" \t\r\n "));
  CHECK_FALSE(IsBlank(" a "));
  CHECK_FALSE(IsBlank("\u00a0"));
}

TEST_CASE("quoted text shows bytes that could harm a terminal as hex and is bounded") {
  CHECK(Quoted("plain") == "'plain'");
  CHECK(Quoted("a\x1b\xff") == "'a\\x1b\\xff'");
  CHECK(Quoted("abcdef", 3) == "'abc...'");
  CHECK(Quoted("abc", 3) == "'abc'");
}

TEST_CASE("a long text is shortened in its middle, without cutting a character") {
  CHECK(Shortened("abcdef", 6) == "abcdef");
  CHECK(Shortened("abcdefghijkl", 9) == "abc...jkl");
  CHECK(Shortened("abcdefghijkl", 10) == "abc...jkl");
  // Of three bytes each.
  CHECK(Shortened("\u20ac\u20ac\u20ac\u20ac", 11) == "\u20ac...\u20ac");
  CHECK(Shortened("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", 11).size() <= 11);
  CHECK(Shortened(std::string(5000, 'x')).size() == 255);
}

TEST_CASE("an option with nothing behind its '=' is found, the first of them") {
  const auto find = [](std::vector<const char*> words) {
    words.insert(words.begin(), "program");
    return EmptyOption(static_cast<int>(words.size()), words.data()).value_or("none");
  };
  CHECK(find({"dump", "--data-dir=", "next"}) ==
        "--data-dir= is empty; give it a value, or leave it out");
  CHECK(find({"--flow=1", "--format=", "--server="}) ==
        "--format= is empty; give it a value, or leave it out");
  CHECK(find({}) == "none");
  CHECK(find({"--rules=shop=", "--off", "-", "x=", "-f=", "="}) == "none");
  CHECK(find({"--data-dir", "", "--", "--flow="}) == "none");
}

TEST_CASE("names are 1..128 bytes of printable UTF-8") {
  CHECK(CheckNamespace("shop").ok());
  CHECK(CheckNamespace(std::string(128, 'n')).ok());
  CHECK(CheckNamespace("").message() == "must be 1..128 bytes, got 0");
  CHECK(CheckNamespace(std::string(129, 'n')).message() == "must be 1..128 bytes, got 129");
  CHECK(CheckNamespace("a\tb").message() ==
        "must be UTF-8 without control characters, got 'a\\x09b'");
  CHECK(CheckNamespace("@shop").ok());
}

TEST_CASE("a client id cannot look like a session without one") {
  CHECK(CheckClientId("worker-7").ok());
  CHECK(CheckClientId("w@rker").ok());
  CHECK(CheckClientId("@10.0.0.1:5000").message() == "must not start with '@'");
  CHECK_FALSE(CheckClientId("").ok());
}

TEST_CASE("text for a terminal has no control characters") {
  CHECK(TerminalText("a\x1b[31mb\n") == "a\\x1b[31mb\\x0a");
  CHECK(TerminalText("\xff") == "\\xff");
  CHECK(TerminalText("caf\xc3\xa9") == "caf\xc3\xa9");
  CHECK(TerminalText("") == "-");
}

TEST_CASE("text for a terminal shows characters that nobody sees or that reorder others") {
  // NOLINTNEXTLINE(misc-misleading-bidirectional)
  CHECK(TerminalText("a\u202egnp.exe") == "a\\u{202e}gnp.exe");
  CHECK(TerminalText("\u2066x\u2069") == "\\u{2066}x\\u{2069}");
  CHECK(TerminalText("pay\u200bments") == "pay\\u{200b}ments");
  CHECK(TerminalText("a\u2028b\u2029c") == "a\\u{2028}b\\u{2029}c");
  CHECK(TerminalText("\ufeffx\u00ad") == "\\u{feff}x\\u{ad}");
  CHECK(TerminalText("tag\U000e0041") == "tag\\u{e0041}");
  CHECK(TerminalText("\u65e5\u672c \u05d0 \U0001f600") == "\u65e5\u672c \u05d0 \U0001f600");
}

TEST_CASE("lines of help are broken between words, below their last column") {
  CHECK(Wrapped("short\n\n  --x N   what it is\n", 20) == "short\n\n  --x N   what it is\n");
  CHECK(Wrapped("  --x N   one two three\n", 16) ==
        "  --x N   one\n          two\n          three\n");
  CHECK(Wrapped("one two three four\n", 9) == "one two\nthree\nfour\n");
  CHECK(Wrapped("a-word-that-is-long b\n", 5) == "a-word-that-is-long\nb\n");
  CHECK(Wrapped("", 80).empty());
}

}  // namespace
}  // namespace nowcalls
