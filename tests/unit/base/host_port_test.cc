#include "base/host_port.h"

#include <doctest/doctest.h>

namespace nowcalls {
namespace {

TEST_CASE("an address is a host and a port, and is written as it was read") {
  for (const char* text : {"127.0.0.1:18730", "[::1]:18730", "localhost:0", "db.example:65535"}) {
    CAPTURE(text);
    const Result<HostPort> parsed = ParseHostPort(text);
    REQUIRE(parsed.ok());
    CHECK(parsed->ToString() == text);
  }
  CHECK(*ParseHostPort("[::1]:80") == HostPort{"::1", 80});
}

TEST_CASE("an address of another form is refused and quoted") {
  for (const char* text : {"", "localhost", ":80", "localhost:", "localhost:x", "localhost:65536",
                           "localhost:-1", "localhost:+1", "::1:80", "[]:80", "[::1]", "a b:80"}) {
    CAPTURE(text);
    CHECK(ParseHostPort(text).status().code() == StatusCode::kInvalidArgument);
  }
  CHECK(ParseHostPort("localhost").status().message() ==
        "'localhost' is not HOST:PORT, such as 127.0.0.1:18730 or [::1]:18730");
  CHECK(ParseHostPort("http://localhost:1").status().message() ==
        "'http://localhost:1' is a URL: write HOST:PORT of the token port alone, such as "
        "127.0.0.1:18730");
  CHECK(!ParseHostPort("localhost/path:1").ok());
  CHECK(!ParseHostPort("me@localhost:1").ok());
  CHECK(ParseHostPort("localhost:65536").status().message() ==
        "'localhost:65536' has a port above 65535");
}

}  // namespace
}  // namespace nowcalls
