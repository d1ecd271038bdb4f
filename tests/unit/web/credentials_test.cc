#include "web/credentials.h"

#include <doctest/doctest.h>

#include <string>

namespace nowcalls::web {
namespace {

TEST_CASE("Base64 is read as RFC 4648 has it, and nothing else") {
  CHECK(FromBase64("") == "");
  CHECK(FromBase64("Zg==") == "f");
  CHECK(FromBase64("Zm8=") == "fo");
  CHECK(FromBase64("Zm9v") == "foo");
  CHECK(FromBase64("Zm9vYmFy") == "foobar");
  CHECK(FromBase64("/+8A") == std::string("\xff\xef\0", 3));
  for (const char* none : {"Z", "Zg", "Zg=", "Zg===", "Z===", "Zm9v\n", "Zm-v", "=Zg="}) {
    CAPTURE(none);
    const auto decoded = FromBase64(none);
    CHECK_FALSE(decoded.has_value());
  }
}

TEST_CASE("Bearer has a secret, Basic a name and a secret, and other headers have none") {
  const auto shown = [](const char* header) {
    const auto found = CredentialsOf(header);
    return found ? found->user + "|" + found->secret : "none";
  };
  CHECK(shown("Bearer abc") == "|abc");
  CHECK(shown("bEARER  abc") == "|abc");
  CHECK(shown("Basic c2hvcDphOmI=") == "shop|a:b");
  CHECK(shown("basic OmFi") == "|ab");
  for (const char* none : {"", "Bearer", "Bearer ", "Basic", "Basic c2hvcA==", "Basic c2hvcDo=",
                           "Basic %", "Digest username=\"shop\"", "abc"}) {
    CAPTURE(none);
    CHECK(shown(none) == "none");
  }
}

}  // namespace
}  // namespace nowcalls::web
