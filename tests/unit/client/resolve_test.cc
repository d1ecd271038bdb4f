#include "client/resolve.h"

#include <doctest/doctest.h>

#include <future>
#include <memory>
#include <string>

#include "base/clock.h"

namespace nowcalls::client {
namespace {

constexpr int64_t kResolvePatientMs = 30'000;
constexpr int64_t kResolveImpatientMs = 50;

int Unreachable(const char* /*host*/, const char* /*port*/, const addrinfo* /*hints*/,
                addrinfo** /*found*/) {
  FAIL("nothing was to be looked up");
  return EAI_FAIL;
}

TEST_CASE("an address in digits is not looked up") {
  for (const char* host : {"127.0.0.1", "::1", "192.0.2.1"}) {
    CAPTURE(host);
    const auto addresses = Resolve({host, 80}, BoottimeMs() + kResolvePatientMs, Unreachable);
    REQUIRE(addresses.ok());
    CHECK(addresses->get()->ai_socktype == SOCK_STREAM);
  }
  // Even when no time is left.
  CHECK(Resolve({"127.0.0.1", 80}, BoottimeMs() - 1, Unreachable).ok());
}

TEST_CASE("a name is looked up with its port") {
  const Lookup lookup = [](const char* host, const char* port, const addrinfo* hints,
                           addrinfo** found) {
    return std::string(host) == "db.example" ? getaddrinfo("127.0.0.7", port, hints, found)
                                             : EAI_NONAME;
  };
  const auto addresses = Resolve({"db.example", 4711}, BoottimeMs() + kResolvePatientMs, lookup);
  REQUIRE_MESSAGE(addresses.ok(), addresses.status().ToString());
  CHECK(addresses->get()->ai_family == AF_INET);
  const Status unknown =
      Resolve({"other.example", 4711}, BoottimeMs() + kResolvePatientMs, lookup).status();
  CHECK(unknown.ToString() == std::string("unavailable: ") + gai_strerror(EAI_NONAME));
}

TEST_CASE("the machine's own name for itself is found") {
  CHECK(Resolve({"localhost", 80}, BoottimeMs() + kResolvePatientMs).ok());
}

TEST_CASE("a name server that is silent does not hold up the caller") {
  std::promise<void> speak;
  const auto spoken = std::make_shared<std::promise<void>>();
  const Lookup silent = [silence = speak.get_future().share(), spoken](
                            const char*, const char* port, const addrinfo* hints,
                            addrinfo** found) {
    silence.wait();
    const int failure = getaddrinfo("127.0.0.1", port, hints, found);
    spoken->set_value();
    return failure;
  };
  const Status status =
      Resolve({"db.example", 80}, BoottimeMs() + kResolveImpatientMs, silent).status();
  CHECK(status.ToString() == "unavailable: the lookup of its name took too long");
  // The answer that comes later finds nobody, and is freed.
  speak.set_value();
  spoken->get_future().wait();
}

}  // namespace
}  // namespace nowcalls::client
