#include "access/access.h"

#include <doctest/doctest.h>

namespace nowcalls::access {
namespace {

constexpr Needs kSeesAll{Role::kObserver, Scope::kServer};
constexpr Needs kTakes{Role::kClient, Scope::kFlow};
constexpr Needs kReclaims{Role::kAdministrator, Scope::kNamespace};

TEST_CASE("a role may do what those before it may, and no more") {
  const Principal observer{.name = "eye", .role = Role::kObserver};
  CHECK(May(observer, kSeesAll, std::nullopt));
  CHECK_FALSE(May(observer, kTakes, "shop"));
  CHECK(WhyNot(observer, kTakes, "shop") == "needs the role client, and eye is observer");
  const Principal administrator{.role = Role::kAdministrator};
  for (const Needs& needs : {kSeesAll, kTakes, kReclaims}) CHECK(May(administrator, needs, "shop"));
  CHECK_FALSE(May({}, kSeesAll, std::nullopt));
  CHECK(WhyNot({}, kSeesAll, std::nullopt) ==
        "needs the role observer, and this connection is anybody");
}

TEST_CASE("namespaces bound what is about a namespace, a flow or a token") {
  const Principal shop{
      .name = "checkout", .role = Role::kAdministrator, .namespaces = {{"shop", "shop-*"}}};
  for (const char* its : {"shop", "shop-", "shop-eu"}) CHECK(May(shop, kTakes, its));
  for (const char* other : {"", "shopping", "default", "SHOP"}) {
    CAPTURE(other);
    CHECK_FALSE(May(shop, kTakes, other));
    CHECK_FALSE(May(shop, kReclaims, other));
    CHECK(May(shop, kSeesAll, other));
  }
  CHECK(WhyNot(shop, kTakes, "default") ==
        "is about namespace 'default', which checkout may not reach");
  const Principal nowhere{.role = Role::kAdministrator, .namespaces = {{}}};
  CHECK_FALSE(May(nowhere, kTakes, "shop"));
}

TEST_CASE("an act about the whole server is for administrators of all namespaces") {
  constexpr Needs kBacksUp{Role::kAdministrator, Scope::kServer};
  CHECK(May({.name = "root", .role = Role::kAdministrator}, kBacksUp, std::nullopt));
  const Principal shop{.name = "ann", .role = Role::kAdministrator, .namespaces = {{"shop"}}};
  CHECK_FALSE(May(shop, kBacksUp, std::nullopt));
  CHECK_FALSE(May(shop, kBacksUp, "shop"));
  CHECK(WhyNot(shop, kBacksUp, std::nullopt) == "is about all namespaces, and ann has some");
  CHECK(May(shop, kSeesAll, std::nullopt));
}

TEST_CASE("today whoever reaches the server is an administrator of all namespaces") {
  const Principal today = PrincipalOf({.name = "10.0.0.1:4711"});
  CHECK(today.name == "10.0.0.1:4711");
  CHECK(May(today, kReclaims, "shop"));
}

}  // namespace
}  // namespace nowcalls::access
