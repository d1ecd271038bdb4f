#include "web/entrance.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/limits.h"
#include "unit/web/tenants.h"

namespace nowcalls::web {
namespace {

using access::Role;

constexpr access::Needs kObserving{Role::kObserver, access::Scope::kServer};
constexpr access::Needs kActing{Role::kAdministrator, access::Scope::kServer};

Request From(const std::string& host, const std::string& authorization, bool encrypted = true) {
  Request request;
  request.path = "/api/flows";
  request.authorization = authorization;
  request.peer = {
      .name = host + ":1", .host = host, .loopback = host == "127.0.0.1", .encrypted = encrypted};
  return request;
}

// "200 NAME" or the status and the text of a refusal.
std::string Told(const Entrance::Visit& visit) {
  if (!visit.refusal) return "200 " + visit.identity.principal.name;
  return std::to_string(visit.refusal->status) + " " + visit.refusal->body;
}

std::string ChallengeOf(const Entrance::Visit& visit) {
  for (const auto& [name, value] : visit.refusal->headers) {
    if (name == "WWW-Authenticate") return value;
  }
  return "";
}

TEST_CASE("a secret opens as Bearer, and as the password of its own name or of none") {
  Entrance entrance(GateOfTenants(), {});
  const auto told = [&](const std::string& authorization) {
    return Told(entrance.Enter(From("10.0.0.8", authorization), kObserving));
  };
  CHECK(told("Bearer secret-of-shop") == "200 shop");
  CHECK(told("Basic c2hvcDpzZWNyZXQtb2Ytc2hvcA==") == "200 shop");  // shop:secret-of-shop
  CHECK(told("Basic OnNlY3JldC1vZi1zaG9w") == "200 shop");          // :secret-of-shop
  CHECK(told("Basic YXBpOnNlY3JldC1vZi1zaG9w") ==                   // api:secret-of-shop
        "401 the name or the secret is wrong\n");
  CHECK(entrance.wrong_secrets() == 1);
}

TEST_CASE("all that is wrong with a secret is told with the same words, and late") {
  Entrance entrance(GateOfTenants(), {});
  for (const char* wrong : {"Bearer x", "Bearer secret-of-nobody", "Basic c2hvcDp4"}) {
    CAPTURE(wrong);
    const auto visit = entrance.Enter(From("10.0.0.8", wrong), kObserving);
    CHECK(Told(visit) == "401 the name or the secret is wrong\n");
    CHECK(visit.refusal->delay_ms == kWrongSecretMs);
  }
  CHECK(entrance.wrong_secrets() == 3);
}

TEST_CASE("who shows nothing is asked for a secret, a page's script without a dialog") {
  Entrance entrance(GateOfTenants(), {});
  for (const char* none : {"", "Digest x", "Basic %"}) {
    Request request = From("127.0.0.1", none, /*encrypted=*/false);
    const auto visit = entrance.Enter(request, kObserving);
    CHECK(Told(visit).starts_with("401 sign in: the secret of a principal"));
    CHECK(ChallengeOf(visit) == R"(Basic realm="nowcalls", charset="UTF-8")");
    CHECK(visit.refusal->delay_ms == 0);
    request.is_fetch = true;
    CHECK(ChallengeOf(entrance.Enter(request, kObserving)) == R"(Bearer realm="nowcalls")");
  }
  CHECK(entrance.wrong_secrets() == 0);
}

TEST_CASE("over plain HTTP from elsewhere a secret is neither taken nor asked for") {
  Entrance entrance(GateOfTenants(), {});
  const std::string why =
      "403 a secret is taken over https:// or from the server's own machine only: others could "
      "read it\n";
  for (const char* shown : {"", "Bearer secret-of-eve", "Bearer x"}) {
    CAPTURE(shown);
    const auto visit = entrance.Enter(From("10.0.0.8", shown, false), kObserving);
    CHECK(Told(visit) == why);
    CHECK(ChallengeOf(visit).empty());
    CHECK(visit.refusal->delay_ms == 0);
  }
  CHECK(entrance.wrong_secrets() == 0);
  CHECK(Told(entrance.Enter(From("127.0.0.1", "Bearer secret-of-eve", false), kObserving)) ==
        "200 eve");
}

TEST_CASE("a known principal without the role is told what it lacks") {
  Entrance entrance(GateOfTenants(), {});
  CHECK(Told(entrance.Enter(From("10.0.0.8", "Bearer secret-of-eve"), kActing)) ==
        "403 /api/flows needs the role administrator, and eve is observer\n");
}

TEST_CASE("an address of a principal opens, but a wrong secret from there does not") {
  access::Entry entry = EntryOf("agents", Role::kObserver);
  entry.networks = {*access::ParseNetwork("10.1.0.0/16")};
  Entrance entrance(GateOf({entry}), {});
  CHECK(Told(entrance.Enter(From("10.1.2.3", "", false), kObserving)) == "200 agents");
  CHECK(Told(entrance.Enter(From("10.1.2.3", "Bearer x"), kObserving)).starts_with("401 "));
  CHECK(Told(entrance.Enter(From("127.0.0.1", ""), kObserving)).starts_with("401 "));
}

TEST_CASE("without an access list everybody may, whatever it shows") {
  Entrance entrance({}, {});
  for (const char* shown : {"", "Bearer x"}) {
    const auto visit = entrance.Enter(From("10.0.0.8", shown, false), kActing);
    CHECK_FALSE(visit.refusal.has_value());
    CHECK_FALSE(visit.identity.principal.namespaces.has_value());
  }
}

TEST_CASE("who entered stays as long as it may as much as before") {
  Entrance entrance(GateOfTenants(), {});
  const Request request = From("10.0.0.8", "Bearer secret-of-shop");
  const auto identity = entrance.Enter(request, kObserving).identity;
  const auto may = [&] { return entrance.Again(request.peer, identity).has_value(); };
  CHECK(may());
  entrance.SetGate(GateOf({EntryOf("shop", Role::kClient)}));
  CHECK(may());
  entrance.SetGate(GateOf({EntryOf("shop", Role::kClient, {{"shop"}})}));
  CHECK_FALSE(may());
  entrance.SetGate(GateOf({EntryOf("eve", Role::kObserver)}));
  CHECK_FALSE(may());
}

TEST_CASE("the log names an address once a minute, a /64 of IPv6 as one, and never a secret") {
  std::vector<std::string> lines;
  Entrance entrance(GateOfTenants(), [&](bool problem, const std::string& line) {
    CHECK(problem);
    lines.push_back(line);
  });
  for (int i = 0; i < 3; ++i) {
    for (const char* host : {"10.0.0.8", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"}) {
      entrance.Enter(From(host, "Bearer secret-of-nobody"), kObserving);
    }
  }
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].starts_with("HTTP got a wrong secret from 10.0.0.8. "));
  for (size_t i = 0; i < 2 * Entrance::kLoggedMax; ++i) {
    entrance.Enter(From("10.0.1." + std::to_string(i), "Bearer secret-of-nobody"), kObserving);
  }
  CHECK(lines.size() == Entrance::kLoggedMax);
  CHECK(entrance.wrong_secrets() == 12 + 2 * Entrance::kLoggedMax);
  for (const std::string& line : lines) CHECK(line.find("nobody") == std::string::npos);
}

}  // namespace
}  // namespace nowcalls::web
