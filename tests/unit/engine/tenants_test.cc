// Namespaces as a boundary: listings of two tenants, flows of others, rules that move, and what the
// log and the history say of an administrator.
#include "unit/engine/tenants.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/books.h"
#include "core/rules/rule_json.h"
#include "core/rules/rule_set.h"
#include "wire/admin_messages.h"
#include "wire/namespace_rows.h"
#include "wire/rows.h"

namespace nowcalls::engine {
namespace {

using testing::AcquireRequest;
using testing::EngineReply;
using testing::HelloRequest;
using testing::PlainRequest;
using testing::PrincipalEntry;
using testing::Tenants;
using testing::TokenRequest;
using wire::Method;

using Encode = std::function<void(const wire::PageParams& page, wire::OutputBuffer* out)>;

// The namespaces of all rows, in pages of one row.
template <typename Row>
std::vector<std::string> NamespacesOf(Tenants* t, ConnectionId id, const Encode& encode,
                                      Result<wire::Page<Row>> (*decode)(std::string_view)) {
  std::vector<std::string> found;
  wire::PageParams params{.limit = 1};
  for (int pages = 0; pages < 100; ++pages) {
    wire::OutputBuffer out;
    encode(params, &out);
    const EngineReply reply = t->h.Call(id, out.view());
    REQUIRE(reply.ErrorText() == "ok");
    const Result<wire::Page<Row>> page = decode(reply.result);
    REQUIRE(page.status().ToString() == "ok");
    CHECK(page->rows.size() <= 1);
    for (const Row& row : page->rows) found.push_back(row.name_space);
    params.cursor = page->next_cursor;
    if (params.cursor == 0) return found;
  }
  FAIL("the listing does not end");
  return found;
}

using Names = std::vector<std::string>;

Encode PageOf(Method method) {
  return [method](const wire::PageParams& page, wire::OutputBuffer* out) {
    wire::EncodePageRequest(5, method, page, out);
  };
}

// Of each listing, all namespaces that it shows.
std::set<std::string> ShownTo(Tenants* t, ConnectionId id) {
  const Encode tokens = [](const wire::PageParams& page, wire::OutputBuffer* out) {
    wire::EncodeTokensRequest(5, {.page = page}, out);
  };
  std::set<std::string> shown;
  const auto add = [&](const Names& names) {
    CHECK_FALSE(names.empty());
    shown.insert(names.begin(), names.end());
  };
  add(NamespacesOf<wire::TokenRow>(t, id, tokens, wire::DecodeTokenPage));
  add(NamespacesOf<wire::FlowRow>(t, id, PageOf(Method::kFlows), wire::DecodeFlowPage));
  add(NamespacesOf<wire::SessionRow>(t, id, PageOf(Method::kSessions), wire::DecodeSessionPage));
  add(NamespacesOf<wire::HistoryRow>(t, id, PageOf(Method::kHistory), wire::DecodeHistoryPage));
  add(NamespacesOf<wire::NamespaceRow>(t, id, PageOf(Method::kNamespaces),
                                       wire::DecodeNamespacePage));
  // Rules come as their fields, so their namespaces are looked for.
  wire::OutputBuffer rules;
  wire::EncodeRulesListRequest(5, {.name_space = {}, .page = {.limit = 100}}, &rules);
  const std::string listed = t->h.Call(id, rules.view()).result;
  for (const char* const name : {"bank", "shop"}) {
    if (listed.find(name) != std::string::npos) shown.insert(name);
  }
  wire::OutputBuffer waiters;
  wire::EncodeWaitersRequest(6, {}, &waiters);
  const auto rows = wire::DecodeWaiterRows(t->h.Call(id, waiters.view()).result);
  REQUIRE(rows.ok());
  Names of_waiters;
  for (const wire::WaiterRow& row : *rows) of_waiters.push_back(row.name_space);
  add(of_waiters);
  return shown;
}

// Takes and releases a token of each tenant several times, in turn.
void MakeHistory(Tenants* t) {
  const ConnectionId ann = t->h.ConnectAs("ann");
  t->h.Call(ann, HelloRequest(1, "shop", "x"));
  const ConnectionId bob = t->h.ConnectAs("bob");
  t->h.Call(bob, HelloRequest(1, "bank", "y"));
  REQUIRE(t->Load("shop", {{.flow = 1, .count = 9}}) == "ok");
  REQUIRE(t->Load("bank", {{.flow = 2, .count = 9}}) == "ok");
  const auto reclaim = [&](ConnectionId id, uint64_t token) {
    wire::OutputBuffer out;
    wire::EncodeReclaimRequest(3, {.token_id = token, .reason = "r"}, &out);
    CHECK(t->h.Call(id, out.view()).status() == TokenStatus::kReleaseOk);
  };
  for (int i = 0; i < 3; ++i) {
    reclaim(bob, t->h.Take(bob, 2));
    reclaim(bob, t->h.Take(bob, 2));
    reclaim(ann, t->h.Take(ann, 1));
  }
  // The waiters were granted: others wait.
  for (const auto& [id, flow] : {std::pair{ann, int64_t{1}}, {bob, int64_t{2}}}) {
    wire::OutputBuffer out;
    wire::EncodeAcquireRequest(9, {.flow_id = flow, .count = 8, .wait_ms = 3'600'000}, &out);
    t->h.Send(id, out.view());
  }
  t->h.Settle();
}

TEST_CASE("a listing shows a tenant what is its own, all of it, page by page") {
  Tenants t;
  MakeHistory(&t);
  CHECK(ShownTo(&t, t.h.ConnectAs("ann")) == std::set<std::string>{"shop"});
  CHECK(ShownTo(&t, t.h.ConnectAs("bob")) == std::set<std::string>{"bank"});
  CHECK(ShownTo(&t, t.h.ConnectAs("root")) == std::set<std::string>{"bank", "shop"});
  const ConnectionId ann = t.h.ConnectAs("ann");
  CHECK(NamespacesOf<wire::HistoryRow>(&t, ann, PageOf(Method::kHistory),
                                       wire::DecodeHistoryPage) == Names(3, "shop"));
}

TEST_CASE("rows that a listing skips are work") {
  Tenants t;
  MakeHistory(&t);
  const ConnectionId ann = t.h.ConnectAs("ann");
  const auto looks_of = [&](ConnectionId id) {
    const uint64_t before = t.h.core().books().looks();
    wire::OutputBuffer out;
    wire::EncodePageRequest(5, Method::kHistory, {.limit = 100}, &out);
    REQUIRE(t.h.Call(id, out.view()).ErrorText() == "ok");
    return t.h.core().books().looks() - before;
  };
  CHECK(looks_of(ann) == looks_of(t.root) + 6);
}

TEST_CASE("a group that asks for one flow of another tenant gets nothing") {
  Tenants t;
  wire::OutputBuffer out;
  wire::EncodeAcquireAllRequest(
      4, {.items = {{.flow_id = 9, .count = 1}, {.flow_id = 2, .count = 1}}}, &out);
  CHECK(t.h.Call(t.anns, out.view()).ErrorText() ==
        "PERMISSION: acquire_all in items[1] is about flow_id 2, which ann may not reach");
  CHECK(t.StillThere());
}

TEST_CASE("of two rules of one id, each tenant reaches its own") {
  Tenants t;
  // The rule of the flow is the shop's, that by value the bank's.
  REQUIRE(t.Load("bank", {{.flow = 1, .count = 5, .param = core::ParamRule{}}, {.flow = 2}}) ==
          "ok");
  const ConnectionId ann = t.h.ConnectAs("ann");
  const ConnectionId bob = t.h.ConnectAs("bob");
  t.h.Call(ann, HelloRequest(1, "shop", "x"));
  t.h.Call(bob, HelloRequest(1, "bank", "y"));
  const auto kind_seen = [&](ConnectionId id) {
    wire::OutputBuffer out;
    wire::EncodeFlowRequest(5, {1}, &out);
    const auto row = wire::DecodeFlowRow(t.h.Call(id, out.view()).result);
    REQUIRE(row.ok());
    return std::string(row->name_space) + " " + std::string(row->kind) +
           (row->by_value.empty() ? "" : " and by value");
  };
  CHECK(kind_seen(ann) == "shop flow");
  CHECK(kind_seen(bob) == "bank value");
  CHECK(kind_seen(t.root) == "shop flow and by value");
  const auto acquire = [&](ConnectionId id, bool by_value) {
    wire::AcquireParams params{.flow_id = 1, .count = 1};
    if (by_value) params.param = Param{ParamType::kString, "v"};
    wire::OutputBuffer out;
    wire::EncodeAcquireRequest(6, params, &out);
    return t.h.Call(id, out.view()).ErrorText();
  };
  const std::string ann_may_not = "PERMISSION: acquire is about flow_id 1, which ann may not reach";
  CHECK(acquire(ann, false) == "ok");
  CHECK(acquire(ann, true) == ann_may_not);
  CHECK(acquire(bob, false) == "PERMISSION: acquire is about flow_id 1, which bob may not reach");
  CHECK(acquire(bob, true) == "ok");
  // Without a kind the administrator of one means that one.
  wire::OutputBuffer drain;
  wire::EncodeDrainRequest(7, {.flow_id = 1, .on = true}, &drain);
  CHECK(t.h.Call(bob, drain.view()).ErrorText() == "ok");
  const core::FlowTable& flows = t.h.core().flows();
  CHECK(flows.at(flows.Find({FlowId{1}, FlowKind::kValue})).draining);
  CHECK_FALSE(flows.at(flows.Find({FlowId{1}, FlowKind::kFlow})).draining);
}

TEST_CASE("a token whose rule has moved to another tenant may be released by its holder") {
  Tenants t;
  REQUIRE(t.Load("shop", {}) == "ok");
  t.h.TakeReplies(t.anns);  // Its waiter is refused.
  REQUIRE(t.Load("bank", {{.flow = 1}, {.flow = 2}}) == "ok");
  const ConnectionId second = t.h.ConnectAs("ann");
  t.h.Call(second, HelloRequest(1, "shop", "anns-second"));
  CHECK(t.h.Call(second, TokenRequest(7, Method::kRelease, t.own.token)).status() ==
        TokenStatus::kAlreadyRelease);
  CHECK(t.h.Call(t.anns, TokenRequest(8, Method::kRelease, t.own.token)).status() ==
        TokenStatus::kReleaseOk);
  const core::FlowTable& flows = t.h.core().flows();
  CHECK(flows.at(flows.Find({FlowId{1}})).lane.now_calls == 0);
}

TEST_CASE("waiters do not come with a rule that moves to a tenant out of their reach") {
  Tenants t;
  const auto set = [](std::string_view name_space, const std::vector<testing::RuleOptions>& rules) {
    return core::RuleSet{.name_space = std::string(name_space),
                         .parsed = core::ParseRules(testing::RulesJson(rules)).value()};
  };
  const std::vector<core::RuleSet> sets = {
      set("shop", {}), set("bank", {{.flow = 1, .count = 9}, {.flow = 2, .count = 2}})};
  REQUIRE(t.h.engine().LoadRules(sets, t.h.now()).ToString() == "ok");
  t.h.Settle();
  const auto replies = t.h.TakeReplies(t.anns);
  REQUIRE(replies.size() == 1);
  CHECK(replies[0].acquire().status == TokenStatus::kNoRuleExists);
  const core::FlowTable& flows = t.h.core().flows();
  CHECK(flows.at(flows.Find({FlowId{1}})).lane.now_calls == 1);
}

TEST_CASE("a token whose rule has moved to another tenant is as one that does not exist") {
  Tenants t;
  t.h.Disconnect(t.bobs);
  REQUIRE(t.Load("shop", {}) == "ok");
  t.h.TakeReplies(t.anns);  // Its waiter is refused.
  REQUIRE(t.Load("bank", {{.flow = 1}, {.flow = 2}}) == "ok");
  CHECK(t.h.Call(t.anns, TokenRequest(7, Method::kKeep, t.own.token)).keep().status ==
        TokenStatus::kAlreadyRelease);
  const core::FlowTable& flows = t.h.core().flows();
  CHECK(flows.at(flows.Find({FlowId{1}})).lane.now_calls == 1);
  // Neither tenant sees it: its flow is of one, its session of the other.
  wire::OutputBuffer out;
  wire::EncodeTokensRequest(9, {.page = {.limit = 10}}, &out);
  CHECK(wire::DecodeTokenPage(t.h.Call(t.h.ConnectAs("ann"), out.view()).result)->rows.empty());
  const auto of_bob = wire::DecodeTokenPage(t.h.Call(t.h.ConnectAs("bob"), out.view()).result);
  for (const wire::TokenRow& row : of_bob->rows) CHECK(row.flow_id == 2);
  CHECK(wire::DecodeTokenPage(t.h.Call(t.root, out.view()).result)->rows.size() == 2);
  // The new owner may take it back.
  wire::OutputBuffer reclaim;
  wire::EncodeReclaimRequest(10, {.token_id = t.own.token, .reason = "moved"}, &reclaim);
  CHECK(t.h.Call(t.h.ConnectAs("bob"), reclaim.view()).status() == TokenStatus::kReleaseOk);
}

TEST_CASE("the history of a flow that has moved to another tenant moves out of sight with it") {
  Tenants t;
  wire::OutputBuffer reclaim;
  wire::EncodeReclaimRequest(3, {.token_id = t.own.token, .reason = "r"}, &reclaim);
  REQUIRE(t.h.Call(t.root, reclaim.view()).status() == TokenStatus::kReleaseOk);
  const auto seen_by = [&](ConnectionId id) {
    return NamespacesOf<wire::HistoryRow>(&t, id, PageOf(Method::kHistory),
                                          wire::DecodeHistoryPage);
  };
  CHECK(seen_by(t.h.ConnectAs("ann")) == Names{"shop"});
  // The token that its waiter has got keeps the flow.
  REQUIRE(t.Load("shop", {}) == "ok");
  CHECK(seen_by(t.h.ConnectAs("ann")) == Names{"shop"});
  REQUIRE(t.Load("bank", {{.flow = 1}, {.flow = 2}}) == "ok");
  CHECK(seen_by(t.h.ConnectAs("ann")).empty());
  CHECK(seen_by(t.h.ConnectAs("bob")).empty());
  CHECK(seen_by(t.root) == Names{"shop"});
}

TEST_CASE("who takes back a client's tokens leaves those whose rule has moved out of reach") {
  Tenants t;
  REQUIRE(t.Load("shop", {{.flow = 1, .count = 2}, {.flow = 3}}) == "ok");
  const uint64_t second = t.h.Take(t.anns, 3);
  REQUIRE(second != 0);
  REQUIRE(t.Load("shop", {{.flow = 3}}) == "ok");
  t.h.TakeReplies(t.anns);  // Its waiter is refused.
  REQUIRE(t.Load("bank", {{.flow = 1}, {.flow = 2}}) == "ok");
  const auto reclaim = [&](ConnectionId id) {
    wire::OutputBuffer out;
    wire::EncodeReclaimClientRequest(
        7, {.name_space = "shop", .client_id = "anns-worker", .reason = "r"}, &out);
    const auto answer = wire::DecodeReclaimedReply(t.h.Call(id, out.view()).result);
    REQUIRE(answer.ok());
    CHECK_FALSE(answer->more);
    return answer->reclaimed;
  };
  const core::FlowTable& flows = t.h.core().flows();
  CHECK(reclaim(t.h.ConnectAs("ann")) == 1);
  CHECK(flows.at(flows.Find({FlowId{3}})).lane.now_calls == 0);
  CHECK(flows.at(flows.Find({FlowId{1}})).lane.now_calls == 1);
  CHECK(reclaim(t.h.ConnectAs("ann")) == 0);
  CHECK(reclaim(t.root) == 1);
}

// The answer to ann, or to `id`, who gives a rule of the bank to the shop.
std::string TakeFlowOfBank(Tenants* t, ConnectionId id, const std::string& resource = "r") {
  const std::string rules = R"([{"resource":")" + resource +
                            R"(","count":1,"grade":0,"clusterMode":true,)"
                            R"("clusterConfig":{"flowId":2,"thresholdType":1}}])";
  wire::OutputBuffer out;
  wire::EncodeRulesLoadRequest(3, "shop", rules, &out);
  return t->h.Call(id, out.view()).ErrorText();
}

TEST_CASE("a set of rules that takes another tenant's flow is refused without its name") {
  Tenants t;
  const ConnectionId ann = t.h.ConnectAs("ann");
  for (const char* const resource :
       {"r", "x belongs to namespace shop", "x is also in the set of namespace shop"}) {
    const std::string text = TakeFlowOfBank(&t, ann, resource);
    CAPTURE(text);
    CHECK(text.starts_with("CONFLICT: "));
    CHECK(text.find(" belongs to another namespace; of each kind") != std::string::npos);
    CHECK(text.find("bank") == std::string::npos);
  }
  CHECK(t.h.driver().TakeLog().find("flowId 2 belongs to namespace bank") != std::string::npos);
}

TEST_CASE("whoever reaches the other namespace is told which one has the flow") {
  Tenants t;
  CHECK(TakeFlowOfBank(&t, t.root).find("flowId 2 belongs to namespace bank; of each kind") !=
        std::string::npos);
  t.h.SetAccess({PrincipalEntry("both", access::Role::kAdministrator, {{"shop", "ba*"}})});
  CHECK(TakeFlowOfBank(&t, t.h.ConnectAs("both")).find("belongs to namespace bank;") !=
        std::string::npos);
}

TEST_CASE("the refusal that a namespace's row tells names no other namespace") {
  Tenants t;
  TakeFlowOfBank(&t, t.root);
  wire::OutputBuffer out;
  wire::EncodePageRequest(5, Method::kNamespaces, {.limit = 9}, &out);
  const auto page = wire::DecodeNamespacePage(t.h.Call(t.h.ConnectAs("ann"), out.view()).result);
  REQUIRE(page->rows.size() == 1);
  const std::string refusal = page->rows[0].refusal.value_or("");
  CHECK(refusal.find("clusterConfig.flowId 2 belongs to another namespace") != std::string::npos);
  CHECK(refusal.find("bank") == std::string::npos);
}

TEST_CASE("an administrator's acts carry its name, in the log and in the history") {
  Tenants t;
  const ConnectionId ann = t.h.ConnectAs("ann");
  wire::OutputBuffer out;
  wire::EncodeReclaimRequest(3, {.token_id = t.own.token, .reason = "hung job"}, &out);
  t.h.Call(ann, out.view());
  CHECK(t.h.driver().TakeLog() == "info: administrator ann at 10.0.0.1:4 reclaimed token " +
                                      std::to_string(t.own.token) +
                                      " of flow 1 from client anns-worker: hung job\n");
  CHECK(t.h.driver().last_topic_and_fields() ==
        "act token=" + std::to_string(t.own.token) +
            " flow=1 client=anns-worker principal=ann by=certificate method=reclaim "
            "peer=10.0.0.1:4 reason=hung job");
  CHECK(testing::HistoryOf(t.h.core()).back().note == "ann: hung job");
  wire::OutputBuffer load;
  wire::EncodeRulesLoadRequest(4, "shop", "[]", &load);
  t.h.Call(ann, load.view());
  CHECK(t.h.driver().TakeLog().find("administrator ann at 10.0.0.1:4 loaded the rules of "
                                    "namespace shop\n") != std::string::npos);
  wire::OutputBuffer backup;
  wire::EncodeBackupRequest(5, {.to = "/copy"}, &backup);
  t.h.Send(t.root, backup.view());
  CHECK(t.h.driver().last_topic_and_fields() ==
        "act principal=root by=certificate peer=10.0.0.1:1 method=backup reason=/copy");
}

TEST_CASE("who tries to take back another tenant's token is told nothing, but the log is") {
  Tenants t;
  wire::OutputBuffer out;
  wire::EncodeReclaimRequest(3, {.token_id = t.other.token, .reason = "r"}, &out);
  CHECK(t.h.Call(t.h.ConnectAs("ann"), out.view()).status() == TokenStatus::kAlreadyRelease);
  const std::string token = std::to_string(t.other.token);
  CHECK(t.h.driver().TakeLog() ==
        "warn: connection ann at 10.0.0.1:4 was refused reclaim: reclaim "
        "is about token " +
            token + ", which ann may not reach\n");
  CHECK(t.h.driver().last_topic_and_fields() ==
        "act principal=ann by=certificate peer=10.0.0.1:4 method=reclaim reason=is about token " +
            token + ", which ann may not reach");
  CHECK(t.StillThere());
}

TEST_CASE("refused acts are logged with who asked, but not more than some of an address") {
  Tenants t;
  t.h.SetAccess({PrincipalEntry("eve", access::Role::kClient, {{"shop"}})});
  t.h.Settle();
  t.h.driver().TakeLog();
  const ConnectionId eve = t.h.ConnectAs("eve");
  wire::OutputBuffer out;
  wire::EncodePurgeRequest(3, {.flow_id = 2}, &out);
  for (int i = 0; i < 100; ++i) t.h.Call(eve, out.view());
  const std::string log = t.h.driver().TakeLog();
  CHECK(std::count(log.begin(), log.end(), '\n') == 10);
  CHECK(
      log.starts_with("warn: connection eve at 10.0.0.1:4 was refused purge: purge needs the role "
                      "administrator, and eve is client\n"));
  CHECK(t.h.driver().last_topic_and_fields() ==
        "act principal=eve by=certificate peer=10.0.0.1:4 method=purge reason=needs the role "
        "administrator, and eve is client");
}

}  // namespace
}  // namespace nowcalls::engine
