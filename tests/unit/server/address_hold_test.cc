#include "server/loop/address_hold.h"

#include <doctest/doctest.h>

#include "server/loop/listener.h"

namespace nowcalls::server {
namespace {

// A port that was free a moment ago.
HostPort FreeAddress() {
  const auto listener = Listener::Bind(net::Endpoint::Tcp({"127.0.0.1", 0}));
  REQUIRE(listener.ok());
  return (*listener)->address().tcp;
}

TEST_CASE("a listener can take an address that is held, and nobody else can afterwards") {
  const HostPort address = FreeAddress();
  const auto hold = AddressHold::Take(address);
  REQUIRE_MESSAGE(hold.ok(), hold.status().ToString());
  const auto listener = Listener::Bind(net::Endpoint::Tcp(address));
  REQUIRE_MESSAGE(listener.ok(), listener.status().ToString());
  CHECK((*listener)->address().tcp == address);
  const Status second = AddressHold::Take(address).status();
  CHECK(second.code() == StatusCode::kIoError);
  CHECK(second.message() == "cannot listen on " + address.ToString() + ": Address already in use");
}

TEST_CASE("an address of another machine cannot be held") {
  // TEST-NET-1, which no machine has.
  const Status status = AddressHold::Take({"192.0.2.1", 0}).status();
  CHECK(status.code() == StatusCode::kIoError);
  CHECK(status.message().starts_with("cannot listen on 192.0.2.1:0: "));
}

TEST_CASE("the host of port 0 is held, whichever port the listener then gets") {
  const auto hold = AddressHold::Take({"127.0.0.1", 0});
  CHECK(hold.ok());
  CHECK(Listener::Bind(net::Endpoint::Tcp({"127.0.0.1", 0})).ok());
}

}  // namespace
}  // namespace nowcalls::server
