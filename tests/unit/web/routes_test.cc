// Every row of the table of routes, asked over HTTP by principals of every role.
#include "web/routes.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "unit/web/http_asking.h"
#include "unit/web/tenants.h"
#include "web/board.h"
#include "web/web.h"

namespace nowcalls::web {
namespace {

using access::Role;
using testing::HttpAnswer;

// A page on loopback, whose feed has not begun.
class Site {
 public:
  explicit Site(WebOptions options) {
    options.listen = HostPort{"127.0.0.1", 0};
    options.log = [this](bool, const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
    };
    auto started = Web::Start(options, &board_);
    REQUIRE(started.status().ToString() == "ok");
    web_ = *std::move(started);
  }

  Web* web() { return web_.get(); }
  HttpAnswer Get(std::string_view path, const std::string& user = "",
                 std::vector<std::string> headers = {}, std::atomic<bool>* begun = nullptr) {
    return testing::Ask(
        {.url = "http://" + web_->addresses().front().ToString() + std::string(path),
         .headers = std::move(headers),
         .user = user,
         .begun = begun});
  }
  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  Board board_;
  std::mutex mutex_;
  std::vector<std::string> lines_;
  std::unique_ptr<Web> web_;
};

// "/api/" alone is nothing.
std::string PathOf(const Route& route) {
  return route.kind == RouteKind::kApi ? "/api/flows" : std::string(route.path);
}

TEST_CASE("a path is of the first row that fits") {
  CHECK(RouteOf("/healthz").kind == RouteKind::kProbe);
  CHECK(RouteOf("/metrics").kind == RouteKind::kMetrics);
  CHECK(RouteOf("/api/flows").kind == RouteKind::kApi);
  CHECK(RouteOf("/api").kind == RouteKind::kPage);
  CHECK(RouteOf("/flow.js").kind == RouteKind::kPage);
  CHECK(RouteOf("").kind == RouteKind::kPage);
}

TEST_CASE("a route is open to its role and those above") {
  const std::pair<const char*, Role> roles[] = {{"none", Role::kAnybody},
                                                {"eve", Role::kObserver},
                                                {"shop", Role::kClient},
                                                {"root", Role::kAdministrator}};
  std::vector<access::Entry> entries;
  for (const auto& [name, role] : roles) entries.push_back(EntryOf(name, role));
  Site site({.gate = GateOf(entries)});
  for (const Route& route : kRoutes) {
    const std::string path = PathOf(route);
    CAPTURE(path);
    const bool is_probe = route.kind == RouteKind::kProbe;
    for (const auto& known : roles) {
      const auto& name = known.first;
      const Role role = known.second;
      CAPTURE(name);
      const HttpAnswer answer = site.Get(path, std::string(name) + ":secret-of-" + name);
      if (role >= route.needs.role) {
        CHECK((is_probe || answer.status == 200));
        CHECK(answer.status != 403);
      } else {
        CHECK(answer.status == 403);
        CHECK(answer.body == path + " needs the role observer, and none is anybody\n");
      }
    }
    // Nobody, and somebody who is wrong.
    CHECK((site.Get(path).status == 401) == !is_probe);
  }
}

TEST_CASE("a browser is asked for the secret on the page, the api and metrics") {
  Site site({.gate = GateOfTenants()});
  for (const char* path : {"/", "/app.js", "/api/flows", "/metrics", "/nothing"}) {
    CAPTURE(path);
    const HttpAnswer answer = site.Get(path);
    CHECK(answer.status == 401);
    CHECK(answer.head.find("www-authenticate: basic realm=\"nowcalls\", charset=\"utf-8\"\r\n") !=
          std::string::npos);
    CHECK(answer.body.starts_with("sign in: "));
  }
  const HttpAnswer fetch = site.Get("/api/look", "", {"Sec-Fetch-Dest: empty"});
  CHECK(fetch.head.find("www-authenticate: bearer ") != std::string::npos);
  // A browser asks for styles and scripts again, with what an address with a password has.
  for (const char* destination : {"document", "style", "script"}) {
    const std::string header = std::string("Sec-Fetch-Dest: ") + destination;
    CHECK(site.Get("/", "", {header}).head.find("basic") != std::string::npos);
  }
  CHECK(site.Get("/api/flows", "", {"Authorization: Bearer secret-of-eve"}).status == 200);
}

TEST_CASE("a wrong secret is answered after a second, counted and logged, and told to nobody") {
  Site site({.gate = GateOfTenants()});
  for (const char* path : {"/", "/metrics"}) {
    CAPTURE(path);
    const HttpAnswer answer = site.Get(path, "eve:secret-of-nobody");
    CHECK(answer.status == 401);
    CHECK(answer.took_ms >= kWrongSecretMs);
    CHECK(answer.body == "the name or the secret is wrong\n");
    CHECK(answer.head.find("nobody") == std::string::npos);
  }
  CHECK(site.Get("/healthz", "eve:secret-of-nobody").took_ms < kWrongSecretMs);
  CHECK(site.Get("/metrics", "eve:secret-of-eve")
            .body.find("nowcalls_http_wrong_secrets_total 2\n") != std::string::npos);
  REQUIRE(site.lines().size() == 1);
  CHECK(site.lines()[0].starts_with("HTTP got a wrong secret from 127.0.0.1. "));
}

TEST_CASE("wrong secrets that wait keep nobody else waiting, and end with their server") {
  auto site = std::make_unique<Site>(WebOptions{.gate = GateOfTenants()});
  std::vector<std::thread> guests;
  std::atomic<int> answered = 0;
  for (int i = 0; i < 8; ++i) {
    guests.emplace_back([&] {
      if (site->Get("/api/flows", "eve:x").status == 401) ++answered;
    });
  }
  CHECK(site->Get("/api/flows", "eve:secret-of-eve").status == 200);
  for (std::thread& guest : guests) guest.join();
  CHECK(answered == 8);
}

TEST_CASE("open metrics ask for no secret, and all else does") {
  Site site({.gate = GateOfTenants(), .metrics_open = true});
  CHECK(site.Get("/metrics").status == 200);
  CHECK(site.Get("/metrics", "eve:x").status == 200);
  CHECK(site.Get("/api/flows").status == 401);
}

// A reader of a stream, from its first bytes to its end.
class Streaming {
 public:
  Streaming(Site* site, const std::string& user) {
    thread_ = std::thread([this, site, user] {
      answer_ = site->Get("/api/stream?view=flows", user, {}, &begun_);
      ended_ = true;
    });
    CHECK(testing::PollUntil(testing::kPatienceMs, [this] { return begun_.load(); }));
  }
  ~Streaming() { thread_.join(); }
  Streaming(const Streaming&) = delete;
  Streaming& operator=(const Streaming&) = delete;

  bool ended() const { return ended_; }

 private:
  std::atomic<bool> begun_ = false;
  std::atomic<bool> ended_ = false;
  HttpAnswer answer_;
  std::thread thread_;
};

TEST_CASE("another access list counts for the next request, and ends streams of who is gone") {
  Site site({.gate = GateOfTenants()});
  const Streaming shop(&site, "shop:secret-of-shop");
  const Streaming api(&site, "api:secret-of-api");
  const Streaming eve(&site, "eve:secret-of-eve");
  const auto ends = [](const Streaming& stream) {
    return testing::PollUntil(testing::kPatienceMs, [&] { return stream.ended(); });
  };
  // One is gone, one is narrowed, one stays.
  site.web()->SetAccess(
      GateOf({EntryOf("eve", Role::kObserver), EntryOf("api", Role::kObserver, {{}})}));
  CHECK(ends(shop));
  CHECK(ends(api));
  CHECK_FALSE(eve.ended());
  CHECK(site.Get("/api/flows", "shop:secret-of-shop").status == 401);
  CHECK(site.Get("/api/flows", "eve:secret-of-eve").status == 200);
  site.web()->SetAccess(GateOf({EntryOf("root", Role::kAdministrator)}));
  CHECK(ends(eve));
}

TEST_CASE("without an access list all is open, as ever") {
  Site site({});
  for (const Route& route : kRoutes) {
    const int status = site.Get(PathOf(route)).status;
    CHECK((status == 200 || route.kind == RouteKind::kProbe));
    CHECK(status != 401);
    CHECK(status != 403);
  }
  CHECK(site.Get("/api/flows", "eve:x").status == 200);
}

}  // namespace
}  // namespace nowcalls::web
