#include "net/resolve.h"

#include <doctest/doctest.h>

#include <future>
#include <memory>
#include <string>

#include "base/clock.h"

namespace nowcalls::net {
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
    const auto addresses = ResolveBefore(BoottimeMs() + kResolvePatientMs, {host, 80}, Unreachable);
    REQUIRE(addresses.ok());
    CHECK(addresses->size() == 1);
  }
  // Even when no time is left.
  CHECK(ResolveBefore(BoottimeMs() - 1, {"127.0.0.1", 80}, Unreachable).ok());
}

TEST_CASE("a name is looked up with its port") {
  const Lookup lookup = [](const char* host, const char* port, const addrinfo* hints,
                           addrinfo** found) {
    return std::string(host) == "db.example" ? getaddrinfo("127.0.0.7", port, hints, found)
                                             : EAI_NONAME;
  };
  const auto addresses =
      ResolveBefore(BoottimeMs() + kResolvePatientMs, {"db.example", 4711}, lookup);
  REQUIRE_MESSAGE(addresses.ok(), addresses.status().ToString());
  CHECK(ToHostPort(addresses->front()).ToString() == "127.0.0.7:4711");
  const Status unknown =
      ResolveBefore(BoottimeMs() + kResolvePatientMs, {"other.example", 4711}, lookup).status();
  CHECK(unknown.ToString() == std::string("unavailable: ") + gai_strerror(EAI_NONAME));
}

TEST_CASE("the machine's own name for itself is found") {
  CHECK(ResolveBefore(BoottimeMs() + kResolvePatientMs, {"localhost", 80}).ok());
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
      ResolveBefore(BoottimeMs() + kResolveImpatientMs, {"db.example", 80}, silent).status();
  CHECK(status.ToString() == "unavailable: the lookup of its name took too long");
  // The answer that comes later finds nobody, and is freed.
  speak.set_value();
  spoken->get_future().wait();
}

}  // namespace
}  // namespace nowcalls::net
