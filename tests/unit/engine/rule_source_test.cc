// Rule sources in front of an engine: the RPC, and one of a user's own, the example of the header.
#include "nowcalls/rule_source.h"

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/rule_sources.h"
#include "support/engine_harness.h"
#include "support/process.h"
#include "test_paths.h"
#include "wire/namespace_rows.h"

namespace nowcalls::engine {
namespace {

using testing::EngineHarness;
using testing::RulesJson;

// NOLINTBEGIN(performance-no-automatic-move)
// The example of nowcalls/rule_source.h begins here.
class PolledRules final : public RuleSource {
 public:
  explicit PolledRules(std::function<std::string()> fetch) : fetch_(std::move(fetch)) {}

  Status Start(RuleSink* sink) override {
    sink_ = sink;
    return sink->Claim({.source = kName, .name_space = "shop"});
  }
  void Stop() override { sink_ = nullptr; }

  // A refusal leaves the old rules in force; the next poll tries again.
  Status Poll() {
    if (sink_ == nullptr) return Status::Ok();
    std::string json = fetch_();
    if (json == in_force_) return Status::Ok();
    const Result<RuleSink::CheckedSet> set = sink_->Check(kName, "shop", json);
    const Status loaded = set.ok() ? sink_->Replace({*set}) : set.status();
    sink_->NoteRefused(kName, "shop", loaded);
    if (loaded.ok()) in_force_ = std::move(json);
    return loaded;
  }

 private:
  static constexpr char kName[] = "inventory:shop";
  const std::function<std::string()> fetch_;
  RuleSink* sink_ = nullptr;
  std::string in_force_;
};
// The example of nowcalls/rule_source.h ends here.
// NOLINTEND(performance-no-automatic-move)

std::string Load(EngineHarness* h, std::string_view name_space, const std::string& json) {
  wire::OutputBuffer out;
  wire::EncodeRulesLoadRequest(1, name_space, json, &out);
  const ConnectionId connection = h->Connect();
  std::string text = h->Call(connection, out.view()).ErrorText();
  h->Disconnect(connection);
  return text;
}

wire::Page<wire::NamespaceRow> Namespaces(EngineHarness* h, const wire::PageParams& page = {}) {
  wire::OutputBuffer out;
  wire::EncodePageRequest(1, wire::Method::kNamespaces, page, &out);
  const ConnectionId connection = h->Connect();
  const auto rows = wire::DecodeNamespacePage(h->Call(connection, out.view()).result);
  h->Disconnect(connection);
  REQUIRE(rows.status().ToString() == "ok");
  return *rows;
}

// Lines of a text between two of them, which are left out, without `prefix`.
std::string Between(const std::string& text, const std::string& first, const std::string& last,
                    const std::string& prefix) {
  std::istringstream in(text);
  std::string cut;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (inside && line == last) return cut;
    if (inside) cut += (line.starts_with(prefix) ? line.substr(prefix.size()) : "") + "\n";
    inside = inside || line == first;
  }
  return "not found";
}

TEST_CASE("the example of rule_source.h is the code that is tested here") {
  const std::string root = NOWCALLS_SOURCE_DIR;
  const std::string header = testing::ReadFileToString(root + "/include/nowcalls/rule_source.h");
  const std::string here =
      testing::ReadFileToString(root + "/tests/unit/engine/" + "rule_source_test.cc");
  const std::string shown = Between(
      header, "// A source that asks a service for rules; the program polls it with Server::Post:",
      "#ifndef NOWCALLS_RULE_SOURCE_H_", "//   ");
  const std::string compiled =
      Between(here, "// The example of nowcalls/rule_source.h begins here.",
              "// The example of nowcalls/rule_source.h ends here.", "");
  CHECK(shown == "\n" + compiled);
}

TEST_CASE("the log tells who loads rules, and who is refused") {
  EngineHarness h({}, {});
  h.driver().TakeLog();
  CHECK(Load(&h, "shop", RulesJson({{.flow = 1, .count = 3}})) == "ok");
  CHECK(h.driver().TakeLog().starts_with(
      "info: administrator 127.0.0.1:1000 loaded the rules of namespace shop\n"
      "info: namespace shop: 1 rule, 1 new or changed, 0 removed, 0 skipped\n"));
  CHECK(Load(&h, "shop", "{}") == "BAD_PARAMS: rules_load: rules must be a JSON array of objects");
  CHECK(h.driver().TakeLog() ==
        "warn: connection 127.0.0.1:1000 was refused a set of rules: namespace shop: rules must be "
        "a JSON array of objects\n");
  CHECK(h.driver().last_topic_and_fields() ==
        "peer peer=127.0.0.1:1000 namespace=shop reason=namespace shop: rules must be a JSON array "
        "of objects");
  CHECK(Load(&h, "other", RulesJson({{.flow = 1, .count = 3}})).starts_with("CONFLICT"));
  CHECK(h.driver().TakeLog().starts_with(
      "warn: connection 127.0.0.1:1000 was refused a set of rules: namespace other: rule of "));
}

TEST_CASE("a load by RPC that changes nothing is told as what one peer did") {
  EngineHarness h({}, {});
  std::string json = RulesJson({{.flow = 1, .count = 3}});
  json.pop_back();
  for (int i = 0; i < 12; ++i) json += R"(,{"resource":"local","clusterMode":false})";
  json += ']';
  REQUIRE(Load(&h, "shop", json) == "ok");
  h.driver().TakeLog();
  REQUIRE(Load(&h, "shop", json) == "ok");
  std::istringstream log(h.driver().TakeLog());
  std::vector<std::string> lines;
  for (std::string line; std::getline(log, line);) {
    CAPTURE(line);
    lines.push_back(line.substr(line.find(": ") + 2));
    CHECK(lines.back().starts_with("connection "));  // As server/log/log_limiter.h looks for.
  }
  REQUIRE(lines.size() == 12);
  const std::string loaded = "connection 127.0.0.1:1000 loaded the rules of namespace shop";
  CHECK(lines[0] == loaded + ", which changes nothing: 1 unchanged, 12 skipped");
  CHECK(lines[1] == loaded + ": rule 2 (resource \"local\") is skipped: clusterMode is false");
  CHECK(lines[11] == loaded + ": 2 more are skipped");
}

TEST_CASE("a line about rules that were refused is not as long as what was sent") {
  EngineHarness h({}, {});
  h.driver().TakeLog();
  CHECK(Load(&h, std::string(4000, 'x'), "[]").starts_with("BAD_PARAMS"));
  CHECK(h.driver().TakeLog().size() < 700);
}

TEST_CASE("a source of a user's own puts rules in force, and owns its namespace") {
  EngineHarness h({}, {});
  std::string json = RulesJson({{.flow = 1, .count = 3}});
  PolledRules source([&] { return json; });
  REQUIRE(source.Start(h.engine().RulesAt(h.now())).ok());
  REQUIRE(source.Poll().ToString() == "ok");
  h.Settle();
  CHECK(Load(&h, "shop", "[]") ==
        "CONFLICT: rules_load: namespace shop takes its rules from inventory:shop and not from "
        "rpc; change them there");
  const ConnectionId client = h.Connect();
  CHECK(h.Call(client, testing::AcquireRequest(1, 1)).acquire().level == 3);

  json = "[{]";
  CHECK(source.Poll().message().starts_with("not valid JSON"));
  json = RulesJson({{.flow = 1, .count = -3}});
  CHECK(source.Poll().message().find("count must be >= 0") != std::string::npos);
  CHECK(h.Call(client, testing::AcquireRequest(2, 1)).acquire().level == 3);

  json = RulesJson({{.flow = 1, .count = 4}});
  REQUIRE(source.Poll().ok());
  CHECK(h.Call(client, testing::AcquireRequest(3, 1)).acquire().level == 4);
  source.Stop();
  json = RulesJson({{.flow = 1, .count = 5}});
  REQUIRE(source.Poll().ok());
  CHECK(h.Call(client, testing::AcquireRequest(4, 1)).acquire().level == 4);
}

class FailingRules final : public RuleSource {
 public:
  Status Start(RuleSink* /*sink*/) override { return Status::Unavailable("no inventory"); }
  void Stop() override { FAIL("stopped without a start"); }
};

TEST_CASE("a source that fails ends a start, and those before it are stopped with their sink") {
  EngineHarness h({}, {});
  int fetched = 0;
  const auto polled = std::make_shared<PolledRules>([&] {
    ++fetched;
    return RulesJson({{.flow = 1, .count = 3}});
  });
  {
    RuleSources sources(
        [&](const RuleSources::Change& change) { return change(h.engine().RulesAt(h.now())); });
    const Status started = sources.Start({polled, std::make_shared<FailingRules>()});
    CHECK(started.message() == "a rule source of the program: no inventory");
    CHECK(polled->Poll().ok());
    CHECK(h.core().flows().rules() == 1);
  }
  CHECK(polled->Poll().ok());
  CHECK(fetched == 1);
}

TEST_CASE("what a source delivers is durable with the next commit") {
  EngineHarness h({}, {});
  PolledRules source([] { return RulesJson({{.flow = 1, .count = 3}}); });
  REQUIRE(source.Start(h.engine().RulesAt(h.now())).ok());
  REQUIRE(source.Poll().ok());
  h.Settle();
  h.Restart();
  CHECK(h.core().flows().rules() == 1);
  const auto page = Namespaces(&h);
  REQUIRE(page.rows.size() == 1);
  CHECK(page.rows[0].source == "inventory:shop");
  // Nobody has claimed it since, so it may be taken.
  CHECK(Load(&h, "shop", RulesJson({{.flow = 2}})) == "ok");
  CHECK(Namespaces(&h).rows[0].source == "rpc");
}

TEST_CASE(
    "namespaces tells when rules were loaded, what was warned of, and why a load was refused") {
  EngineHarness h({}, {});
  const auto row = [&] {
    const auto page = Namespaces(&h);
    REQUIRE(page.rows.size() == 1);
    return page.rows[0];
  };
  CHECK(Load(&h, "shop", R"([{"resource":"r","count":0.5,"clusterMode":true,"limitApp":"a",
                              "clusterConfig":{"flowId":1,"thresholdType":1}}])") == "ok");
  const wire::NamespaceRow loaded = row();
  CHECK(loaded.loaded_ms == h.now().ms);
  CHECK(loaded.warnings == 2);
  CHECK_FALSE(loaded.refused_ms.has_value());
  CHECK(loaded.requests_max == Limits().namespace_qps_max);
  Load(&h, "shop",
       R"([{"resource":"r","count":-1,"clusterMode":true,"clusterConfig":{"flowId":1}}])");
  CHECK(row().refused_ms.has_value());
  CHECK(row().refusal->find("count must be >= 0") != std::string::npos);
  CHECK(row().warnings == 2);
  // Whoever may not load them says nothing about the rules in force.
  h.engine().RulesAt(h.now())->NoteRefused("file:/x.json", "shop", Status::Ok());
  CHECK(row().refused_ms.has_value());
  CHECK(Load(&h, "shop", RulesJson({{.flow = 1}})) == "ok");
  CHECK_FALSE(row().refused_ms.has_value());
  CHECK_FALSE(row().refusal.has_value());
  CHECK(row().warnings == 0);
}

// Of a row, what it is besides.
wire::NamespaceRow WithoutLoads(wire::NamespaceRow row) {
  row.loaded_ms.reset();
  row.warnings.reset();
  row.requests_max.reset();
  return row;
}

TEST_CASE("namespaces tells source, rules and sessions of each, page by page") {
  EngineHarness h({}, {});
  REQUIRE(h.engine()
              .RulesAt(h.now())
              ->Claim({.source = "file:/etc/bank.json", .name_space = "bank"})
              .ok());
  CHECK(Load(&h, "shop", RulesJson({{.flow = 1}, {.flow = 2}})) == "ok");
  const ConnectionId shop = h.Connect();
  h.Call(shop, testing::HelloRequest(1, "shop", "till-1"));
  const ConnectionId solo = h.Connect();
  h.Call(solo, testing::HelloRequest(1, "solo", "a"));
  const auto all = Namespaces(&h);
  REQUIRE(all.rows.size() == 3);
  CHECK(all.next_cursor == 0);
  CHECK(WithoutLoads(all.rows[0]) == wire::NamespaceRow{"bank", "file:/etc/bank.json", 0, 0, 0});
  CHECK(WithoutLoads(all.rows[1]) == wire::NamespaceRow{"shop", "rpc", 2, 1, 1});
  CHECK(WithoutLoads(all.rows[2]) == wire::NamespaceRow{"solo", std::nullopt, 0, 1, 1});

  const auto first = Namespaces(&h, {.limit = 2, .cursor = 0});
  CHECK(first.rows.size() == 2);
  REQUIRE(first.next_cursor != 0);
  const auto rest = Namespaces(&h, {.limit = 2, .cursor = first.next_cursor});
  REQUIRE(rest.rows.size() == 1);
  CHECK(rest.rows[0] == all.rows[2]);
  CHECK(rest.next_cursor == 0);
  CHECK(Namespaces(&h, {.limit = 2, .cursor = UINT64_MAX}).rows.empty());
}

}  // namespace
}  // namespace nowcalls::engine
