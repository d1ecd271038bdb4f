// Flows by name through the engine: in which namespace, whom they are refused, and with which
// words.
#include "engine/rpc/flow_name.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/rules/flow_number.h"
#include "core/rules/rule_json.h"
#include "core/rules/rule_set.h"
#include "support/engine_harness.h"
#include "wire/admin_messages.h"
#include "wire/client_messages.h"
#include "wire/json.h"
#include "wire/rows.h"

namespace nowcalls::engine {
namespace {

using testing::EngineHarness;
using testing::EngineReply;
using testing::RuleOptions;
using wire::OutputBuffer;

class NamedServer {
 public:
  NamedServer() : h(Limits(), {}) {}

  void Load(std::string_view name_space, const std::vector<RuleOptions>& rules) {
    core::RuleSet set{.name_space = std::string(name_space),
                      .parsed = core::ParseRules(testing::RulesJson(rules), name_space).value()};
    for (size_t i = 0; i < rules.size(); ++i) testing::AddParam(rules[i], &set.parsed.rules[i]);
    REQUIRE(h.engine().LoadRules({set}, h.now()).ToString() == "ok");
    h.Settle();
  }
  ConnectionId Client(std::string_view name_space) {
    const ConnectionId id = h.Connect("127.0.0.1:" + std::to_string(++port_));
    REQUIRE(h.Call(id, testing::HelloRequest(1, name_space, std::nullopt)).ErrorText() == "ok");
    return id;
  }

  template <typename Encode>
  EngineReply Call(ConnectionId id, Encode encode) {
    OutputBuffer out;
    encode(&out);
    return h.Call(id, out.view());
  }
  EngineReply Ask(ConnectionId id, const wire::AcquireParams& params) {
    return Call(id, [&](OutputBuffer* out) { wire::EncodeAcquireRequest(1, params, out); });
  }
  // "OK 1/2", or the error.
  std::string Acquire(ConnectionId id, std::string_view name, bool by_value = false) {
    wire::AcquireParams params{.count = 1, .flow_name = name};
    if (by_value) params.param = Param{ParamType::kString, "x"};
    const EngineReply reply = Ask(id, params);
    if (reply.error) return reply.ErrorText();
    const wire::AcquireReply answer = reply.acquire();
    return std::string(TokenStatusName(answer.status)) + " " + std::to_string(answer.now_calls) +
           "/" + std::to_string(answer.level);
  }
  // The status, or the error.
  std::string Rate(ConnectionId id, std::string_view name) {
    const EngineReply reply = Call(id, [&](OutputBuffer* out) {
      wire::EncodeRateRequest(1, {.count = 1, .flow_name = name}, out);
    });
    if (reply.error) return reply.ErrorText();
    return std::string(TokenStatusName(wire::DecodeRateReply(reply.result)->status));
  }
  // The number of the flow that is shown, or the error.
  std::string Flow(ConnectionId id, std::string_view name, std::optional<FlowKind> kind = {}) {
    const EngineReply reply = Call(id, [&](OutputBuffer* out) {
      wire::EncodeFlowRequest(1, {.kind = kind, .flow_name = name}, out);
    });
    if (reply.error) return reply.ErrorText();
    const auto row = wire::DecodeFlowRow(reply.result);
    REQUIRE(row.ok());
    return std::to_string(row->flow_id) + " " + row->kind +
           (row->by_value.empty() ? "" : " and by value");
  }

  EngineHarness h;

 private:
  int port_ = 1000;
};

TEST_CASE("a name is of the namespace of the session, without one of the default namespace") {
  NamedServer s;
  s.Load("default", {{.flow = 1, .count = 1, .resource = "checkout"}});
  s.Load("shop", {{.count = 2, .resource = "checkout"}});
  s.Load("bank", {{.flow = 3, .count = 3, .resource = "checkout"}});
  CHECK(s.Acquire(s.h.Connect("127.0.0.1:9"), "checkout") == "OK 1/1");
  const ConnectionId shop = s.Client("shop");
  CHECK(s.Acquire(shop, "checkout") == "OK 1/2");
  CHECK(s.Acquire(shop, "checkout") == "OK 2/2");
  CHECK(s.Acquire(shop, "checkout") == "BLOCKED 2/2");
  CHECK(s.Acquire(s.Client("bank"), "checkout") == "OK 1/3");
  CHECK(s.Rate(shop, "checkout") == "OK");
  // By number it is the same flow.
  const FlowId number = core::FlowNumberOf("shop", "checkout");
  CHECK(s.Ask(shop, {.flow_id = number.value, .count = 1}).acquire().now_calls == 2);
}

TEST_CASE("a name without a rule is answered as a number without one") {
  NamedServer s;
  s.Load("shop", {{.flow = 1, .count = 1, .resource = "checkout"},
                  {.flow = 2, .param = core::ParamRule{}, .resource = "chat"}});
  const ConnectionId shop = s.Client("shop");
  CHECK(s.Acquire(shop, "Checkout") == "NO_RULE_EXISTS 0/0");
  CHECK(s.Rate(shop, "Checkout") == "NO_RULE_EXISTS");
  CHECK(s.Acquire(s.Client("other"), "checkout") == "NO_RULE_EXISTS 0/0");
  CHECK(s.Acquire(s.h.Connect("127.0.0.1:9"), "checkout") == "NO_RULE_EXISTS 0/0");
  // Only a rule of the other kind has it.
  CHECK(s.Acquire(shop, "checkout", /*by_value=*/true) == "BAD_REQUEST 0/1");
  CHECK(s.Acquire(shop, "chat") == "BAD_REQUEST 0/10");
  CHECK(s.Acquire(shop, "chat", /*by_value=*/true) == "OK 1/10");
}

TEST_CASE("a rule that has the number of another name does not answer for that name") {
  NamedServer s;
  const FlowId number = core::FlowNumberOf("shop", "checkout");
  s.Load("shop", {{.flow = number.value, .count = 5, .resource = "other"}});
  CHECK(s.Acquire(s.Client("shop"), "checkout") == "NO_RULE_EXISTS 0/0");
}

TEST_CASE("a name of a removed rule finds it for a repeated request id") {
  NamedServer s;
  s.Load("shop", {{.flow = 7, .count = 5, .resource = "checkout"}});
  const ConnectionId shop = s.Client("shop");
  const wire::AcquireParams params{.count = 1, .request_id = 99, .flow_name = "checkout"};
  const uint64_t token = s.Ask(shop, params).acquire().token_id;
  s.Load("shop", {});
  CHECK(s.Ask(shop, params).acquire().token_id == token);
  CHECK(s.Acquire(shop, "checkout") == "NO_RULE_EXISTS 0/0");
  CHECK(s.Flow(shop, "checkout") == "7 flow");
}

TEST_CASE("a repeated request by name finds its tokens, though the rule has another number") {
  NamedServer s;
  s.Load("shop", {{.flow = 7, .resource = "checkout"}, {.flow = 8, .resource = "search"}});
  const ConnectionId shop = s.Client("shop");
  const wire::AcquireParams one{.count = 1, .request_id = 99, .flow_name = "checkout"};
  const wire::AcquireAllParams group{
      .items = {{.count = 1, .flow_name = "search"}, {.flow_id = 7, .count = 1}},
      .request_id = 100};
  const auto ask_group = [&] {
    const EngineReply reply =
        s.Call(shop, [&](OutputBuffer* out) { wire::EncodeAcquireAllRequest(1, group, out); });
    return wire::DecodeAcquireAllReply(reply.result)->tokens.at(0).token_id;
  };
  const uint64_t token = s.Ask(shop, one).acquire().token_id;
  const uint64_t first_of_group = ask_group();
  s.Load("shop", {{.flow = 70, .resource = "checkout"}, {.flow = 80, .resource = "search"}});
  CHECK(s.Ask(shop, one).acquire().token_id == token);
  CHECK(ask_group() == first_of_group);
  // Another request is of the rule in force.
  CHECK(s.Ask(shop, {.count = 1, .request_id = 101, .flow_name = "checkout"}).acquire().token_id !=
        token);
}

TEST_CASE("a name of two rules of one kind is refused with both numbers") {
  NamedServer s;
  s.Load("shop", {{.flow = 8, .resource = "checkout"},
                  {.flow = 7, .resource = "checkout"},
                  {.flow = 9, .param = core::ParamRule{}, .resource = "checkout"}});
  const ConnectionId shop = s.Client("shop");
  const std::string why =
      "flow_id 'checkout' is the resource of several rules: 8 of namespace shop, 7 of namespace "
      "shop; ask by number";
  CHECK(s.Acquire(shop, "checkout") == "BAD_PARAMS: acquire: " + why);
  CHECK(s.Rate(shop, "checkout") == "BAD_PARAMS: request: " + why);
  CHECK(s.Flow(shop, "checkout", FlowKind::kFlow) == "BAD_PARAMS: flow: " + why);
  CHECK(s.Acquire(shop, "checkout", /*by_value=*/true) == "OK 1/10");
  CHECK(s.Flow(shop, "checkout", FlowKind::kValue) == "9 value");
  // Six rules: the error names the first of them.
  std::vector<RuleOptions> many;
  for (int64_t flow = 1; flow <= 6; ++flow) many.push_back({.flow = flow, .resource = "many"});
  s.Load("bank", many);
  CHECK(
      s.Acquire(s.Client("bank"), "many").ends_with("4 of namespace bank and more; ask by number"));
}

TEST_CASE("an acquire_all takes names and numbers, but no flow twice") {
  NamedServer s;
  s.Load("shop", {{.flow = 7, .count = 1, .resource = "checkout"}, {.resource = "search"}});
  const ConnectionId shop = s.Client("shop");
  const auto ask = [&](const wire::AcquireAllParams& params) {
    return s.Call(shop, [&](OutputBuffer* out) { wire::EncodeAcquireAllRequest(1, params, out); });
  };
  const EngineReply twice = ask({.items = {{.flow_id = 7, .count = 1},
                                           {.count = 1, .flow_name = "search"},
                                           {.count = 1, .flow_name = "checkout"}}});
  CHECK(twice.ErrorText() ==
        "BAD_PARAMS: acquire_all: items must not hold flow_id 7 with the same param twice");
  const wire::AcquireAllParams both{
      .items = {{.count = 1, .flow_name = "search"}, {.count = 1, .flow_name = "checkout"}}};
  CHECK(wire::DecodeAcquireAllReply(ask(both).result)->tokens.size() == 2);
  const auto refused = wire::DecodeAcquireAllReply(ask(both).result);
  CHECK(refused->status == TokenStatus::kBlocked);
  CHECK(refused->flow_id == 7);
}

TEST_CASE("an administrator's name is of the hello's namespace, else of all in sight") {
  NamedServer s;
  s.Load("shop", {{.flow = 7, .resource = "checkout"}, {.flow = 8, .resource = "search"}});
  s.Load("bank", {{.flow = 9, .resource = "checkout"},
                  {.flow = 9, .param = core::ParamRule{}, .resource = "checkout"}});
  const ConnectionId admin = s.h.Connect("127.0.0.1:9");
  CHECK(s.Flow(admin, "search") == "8 flow");
  CHECK(s.Flow(admin, "checkout") ==
        "BAD_PARAMS: flow: flow_id 'checkout' is the resource of several rules: 7 of namespace "
        "shop, 9 of namespace bank, 9 by value of namespace bank; ask by number");
  CHECK(s.Flow(admin, "none") == "BAD_PARAMS: flow: flow_id 'none' has neither a rule nor tokens");
  CHECK(s.Flow(s.Client("shop"), "checkout") == "7 flow");
  CHECK(s.Flow(s.Client("bank"), "checkout") == "9 flow and by value");
  CHECK(s.Flow(s.Client("bank"), "search").ends_with("neither a rule nor tokens"));
}

TEST_CASE("a name of one kind does not mean the other kind of its number") {
  NamedServer s;
  s.Load("shop", {{.flow = 7, .resource = "checkout"},
                  {.flow = 7, .param = core::ParamRule{}, .resource = "chat"}});
  const ConnectionId shop = s.Client("shop");
  CHECK(s.Acquire(shop, "chat") == "BAD_REQUEST 0/0");
  CHECK(s.Rate(shop, "chat") == "BAD_REQUEST");
  CHECK(s.Acquire(shop, "checkout", /*by_value=*/true) == "BAD_REQUEST 0/0");
  CHECK(s.Flow(s.h.Connect("127.0.0.1:9"), "checkout") == "7 flow");
  CHECK(s.Flow(s.h.Connect("127.0.0.1:8"), "chat") == "7 value");
}

TEST_CASE("listings and acts take names") {
  NamedServer s;
  s.Load("shop", {{.count = 5, .resource = "checkout"},
                  {.flow = 8, .resource = "search"},
                  {.flow = 8, .param = core::ParamRule{}, .resource = "pay"}});
  const ConnectionId shop = s.Client("shop");
  for (int i = 0; i < 2; ++i) CHECK(s.Acquire(shop, "checkout").starts_with("OK"));
  s.Acquire(shop, "search");
  const ConnectionId admin = s.h.Connect("127.0.0.1:9");
  const auto tokens = [&](std::string_view name) {
    const EngineReply reply = s.Call(admin, [&](OutputBuffer* out) {
      wire::EncodeTokensRequest(1, {.page = {.limit = 10}, .flow_name = name}, out);
    });
    return reply.error ? reply.ErrorText()
                       : std::to_string(wire::DecodeTokenPage(reply.result)->rows.size());
  };
  CHECK(tokens("checkout") == "2");
  CHECK(tokens("search") == "1");
  CHECK(tokens("none") == "BAD_PARAMS: tokens: flow_id 'none' has neither a rule nor tokens");
  const EngineReply drained = s.Call(admin, [&](OutputBuffer* out) {
    wire::EncodeDrainRequest(1, {.on = true, .flow_name = "checkout"}, out);
  });
  CHECK(wire::DecodeDrainReply(drained.result)->tokens == 2);
  CHECK(s.Acquire(shop, "checkout") == "BLOCKED 2/5");
  CHECK(s.Acquire(shop, "search").starts_with("OK"));
  const EngineReply reclaimed = s.Call(admin, [&](OutputBuffer* out) {
    wire::EncodeReclaimFlowRequest(1, {.reason = "r", .flow_name = "checkout"}, out);
  });
  CHECK(wire::DecodeReclaimedReply(reclaimed.result)->reclaimed == 2);
  // Only a rule by value has values: that of "pay" has the number of "search".
  const auto values = [&](std::string_view name) {
    return s
        .Call(admin,
              [&](OutputBuffer* out) {
                wire::EncodeParamsRequest(1, {.limit = 10, .flow_name = name}, out);
              })
        .ErrorText();
  };
  CHECK(values("pay") == "ok");
  CHECK(values("search") ==
        "BAD_PARAMS: params: flow_id 'search' by value has neither a rule nor "
        "tokens");
  const EngineReply waiters = s.Call(admin, [&](OutputBuffer* out) {
    wire::EncodeWaitersRequest(1, {.limit = 10, .flow_name = "checkout"}, out);
  });
  CHECK(waiters.ErrorText() == "ok");
  // A removed rule with tokens out is purged by its name.
  s.Load("shop", {});
  const EngineReply purged = s.Call(
      admin, [&](OutputBuffer* out) { wire::EncodePurgeRequest(1, {.flow_name = "search"}, out); });
  CHECK(wire::DecodeReclaimedReply(purged.result)->reclaimed == 2);
}

TEST_CASE("rules_list has the rules of one flow, by number or by name") {
  NamedServer s;
  s.Load("shop", {{.flow = 7, .resource = "checkout"},
                  {.flow = 8, .param = core::ParamRule{}, .resource = "checkout"},
                  {.flow = 8, .resource = "search"}});
  s.Load("bank", {{.flow = 9, .resource = "checkout"}});
  const auto listed = [&](ConnectionId id, const wire::RulesListParams& params) {
    const EngineReply reply =
        s.Call(id, [&](OutputBuffer* out) { wire::EncodeRulesListRequest(1, params, out); });
    REQUIRE(reply.ErrorText() == "ok");
    const auto page = wire::JsonFromMessagePack(reply.result);
    REQUIRE(page.ok());
    CHECK(page->at(1).is_null());
    std::string text;
    for (const auto& rule : page->at(0)) {
      text += (text.empty() ? "" : " ") +
              std::to_string(rule.at("clusterConfig").at("flowId").get<int64_t>()) + "/" +
              rule.at("kind").get<std::string>();
    }
    return text;
  };
  const ConnectionId shop = s.Client("shop");
  const ConnectionId admin = s.h.Connect("127.0.0.1:9");
  CHECK(listed(shop, {.name_space = {}, .page = {.limit = 2}, .flow_name = "checkout"}) ==
        "7/flow 8/value");
  CHECK(listed(admin, {.name_space = {}, .page = {.limit = 2}, .flow_name = "checkout"}) ==
        "7/flow 9/flow 8/value");
  CHECK(listed(admin, {.name_space = "bank", .page = {}, .flow_name = "checkout"}) == "9/flow");
  CHECK(listed(shop, {.name_space = "bank", .page = {}, .flow_name = "checkout"}) == "9/flow");
  CHECK(listed(admin, {.name_space = {}, .page = {}, .flow_id = 8}) == "8/flow 8/value");
  CHECK(listed(admin, {.name_space = {}, .page = {}, .flow_id = 99}).empty());
  CHECK(listed(admin, {.name_space = {}, .page = {}, .flow_name = "none"}).empty());
  s.h.SetAccess({testing::PrincipalEntry("ann", access::Role::kAdministrator,
                                         std::vector<std::string>{"shop"})});
  const ConnectionId ann = s.h.ConnectAs("ann");
  CHECK(listed(ann, {.name_space = {}, .page = {}, .flow_name = "checkout"}) == "7/flow 8/value");
  CHECK(listed(ann, {.name_space = {}, .page = {}, .flow_id = 9}).empty());
}

TEST_CASE("a tenant learns nothing of the names of others") {
  NamedServer s;
  s.Load("shop", {{.flow = 7, .resource = "checkout"}});
  s.Load("bank", {{.flow = 8, .resource = "checkout"}, {.flow = 9, .resource = "vault"}});
  s.Load("default", {{.flow = 1, .resource = "twice"}, {.flow = 2, .resource = "twice"}});
  s.h.SetAccess({testing::PrincipalEntry("ann", access::Role::kAdministrator,
                                         std::vector<std::string>{"shop"})});
  const ConnectionId ann = s.h.ConnectAs("ann");
  CHECK(s.Flow(ann, "checkout") == "7 flow");
  CHECK(s.Flow(ann, "none") == "BAD_PARAMS: flow: flow_id 'none' has neither a rule nor tokens");
  CHECK(s.Flow(ann, "vault") == "BAD_PARAMS: flow: flow_id 'vault' has neither a rule nor tokens");
  CHECK(s.Acquire(ann, "checkout").starts_with("PERMISSION: acquire "));  // Of namespace default.
  CHECK(s.Rate(ann, "twice").starts_with("PERMISSION: request "));
  REQUIRE(s.h.Call(ann, testing::HelloRequest(1, "shop", std::nullopt)).ErrorText() == "ok");
  CHECK(s.Acquire(ann, "checkout") == "OK 1/10");
  CHECK(s.Acquire(ann, "vault") == "NO_RULE_EXISTS 0/0");
}

}  // namespace
}  // namespace nowcalls::engine
