// What administrators ask over a connection: answers, log lines with who and why, and that the
// loop's turns stay short.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/books.h"
#include "support/engine_harness.h"
#include "wire/admin_messages.h"
#include "wire/client_messages.h"
#include "wire/cluster_messages.h"
#include "wire/rows.h"

namespace nowcalls::engine {
namespace {

using testing::AcquireRequest;
using testing::EngineHarness;
using testing::EngineReply;
using testing::HelloRequest;
using testing::HistoryOf;
using testing::PlainRequest;
using testing::TokenRequest;
using wire::Method;
using wire::OutputBuffer;

std::string ReclaimClientRequest(uint32_t msgid, const wire::ReclaimClientParams& params) {
  OutputBuffer out;
  wire::EncodeReclaimClientRequest(msgid, params, &out);
  return std::string(out.view());
}
std::string ReclaimFlowRequest(uint32_t msgid, const wire::ReclaimFlowParams& params) {
  OutputBuffer out;
  wire::EncodeReclaimFlowRequest(msgid, params, &out);
  return std::string(out.view());
}
std::string PurgeRequest(uint32_t msgid, const wire::PurgeParams& params) {
  OutputBuffer out;
  wire::EncodePurgeRequest(msgid, params, &out);
  return std::string(out.view());
}
std::string DrainRequest(uint32_t msgid, const wire::DrainParams& params) {
  OutputBuffer out;
  wire::EncodeDrainRequest(msgid, params, &out);
  return std::string(out.view());
}
std::string HistoryRequest(uint32_t msgid, const wire::PageParams& page) {
  OutputBuffer out;
  wire::EncodePageRequest(msgid, Method::kHistory, page, &out);
  return std::string(out.view());
}

// "3 more", "0", or the error.
std::string Reclaimed(const EngineReply& reply) {
  if (reply.error) return reply.ErrorText();
  const auto answer = wire::DecodeReclaimedReply(reply.result);
  REQUIRE(answer.status().ToString() == "ok");
  return std::to_string(answer->reclaimed) + (answer->more ? " more" : "");
}

// An administrator and a client with five tokens of flow 1 and one of flow 2.
struct Server {
  Server()
      : h({}, {{.flow = 1, .count = 10'000}, {.flow = 2}}),
        admin(h.Connect("10.0.0.1:5")),
        client(h.Connect("127.0.0.1:2")) {
    h.Call(client, HelloRequest(1, "shop", "a"));
    for (int i = 0; i < 5; ++i) tokens.push_back(h.Take(client));
    tokens.push_back(h.Take(client, 2));
    h.driver().TakeLog();
  }

  EngineHarness h;
  ConnectionId admin;
  ConnectionId client;
  std::vector<uint64_t> tokens;
};

TEST_CASE("reclaim_client and reclaim_flow answer how many and whether there are more") {
  Server s;
  CHECK(Reclaimed(s.h.Call(s.admin, ReclaimClientRequest(1, {"shop", "a", "hung", 2}))) ==
        "2 more");
  CHECK(Reclaimed(s.h.Call(s.admin, ReclaimClientRequest(1, {"shop", "b", "hung", 2}))) == "0");
  CHECK(Reclaimed(s.h.Call(s.admin, ReclaimFlowRequest(1, {1, "hung", 1000}))) == "3");
  CHECK(Reclaimed(s.h.Call(s.admin, ReclaimFlowRequest(1, {3, "hung", 1000}))) ==
        "BAD_PARAMS: reclaim_flow: flow_id 3 has neither a rule nor tokens");
  CHECK(s.h.core().books().tokens().size() == 1);
  CHECK(s.h.driver().TakeLog() ==
        "info: administrator 10.0.0.1:5 reclaimed 2 tokens of client a of namespace shop: hung; "
        "more are left\n"
        "info: administrator 10.0.0.1:5 reclaimed 3 tokens of flow 1: hung\n");
}

TEST_CASE("purge is refused while the rule is in force, and takes the rest when it is gone") {
  Server s;
  CHECK(Reclaimed(s.h.Call(s.admin, PurgeRequest(1, {1, 1000}))) ==
        "BAD_PARAMS: purge: flow_id 1 has a rule in force; purge is for flows whose rule was "
        "removed: remove the rule first, or use reclaim_flow");
  REQUIRE(s.h.engine().LoadRules({{"default", {}}}, s.h.now()).ok());
  s.h.driver().TakeLog();
  CHECK(Reclaimed(s.h.Call(s.admin, PurgeRequest(1, {1, 4}))) == "4 more");
  CHECK(Reclaimed(s.h.Call(s.admin, PurgeRequest(1, {1, 4, "old rule"}))) == "1");
  CHECK(s.h.driver().TakeLog() ==
        "info: administrator 10.0.0.1:5 purged 4 tokens of flow 1, whose rule was removed; more "
        "are left\n"
        "info: administrator 10.0.0.1:5 purged 1 token of flow 1, whose rule was removed: old "
        "rule\n");
  CHECK(HistoryOf(s.h.core())[3].note.empty());
  CHECK(HistoryOf(s.h.core())[4].note == "old rule");
  CHECK(Reclaimed(s.h.Call(s.admin, PurgeRequest(1, {1, 4}))) ==
        "BAD_PARAMS: purge: flow_id 1 has neither a rule nor tokens");
}

TEST_CASE("drain stops a flow's grants until it ends, and the flow's row says so") {
  Server s;
  const auto drain = [&](int64_t flow, bool on) {
    const auto reply =
        wire::DecodeDrainReply(s.h.Call(s.admin, DrainRequest(1, {flow, on})).result);
    REQUIRE(reply.status().ToString() == "ok");
    return *reply;
  };
  const auto row = [&] {
    OutputBuffer out;
    wire::EncodeFlowRequest(1, {1}, &out);
    return wire::DecodeFlowRow(s.h.Call(s.admin, out.view()).result).value();
  };
  CHECK_FALSE(row().draining);
  CHECK(drain(1, true) == wire::DrainReply{TokenStatus::kOk, 5, 5});
  CHECK(drain(3, true).status == TokenStatus::kNoRuleExists);
  const wire::AcquireReply refused = s.h.Call(s.client, AcquireRequest(1, 1)).acquire();
  CHECK(refused.status == TokenStatus::kBlocked);
  CHECK(refused.refused_by == RefusedBy::kDraining);
  CHECK(row().draining);
  CHECK(row().counters->refused[static_cast<size_t>(RefusedBy::kDraining)] == 1);
  s.h.Call(s.admin, DrainRequest(1, {1, false, "all done"}));
  CHECK(s.h.Call(s.client, AcquireRequest(1, 1)).acquire().status == TokenStatus::kOk);
  CHECK(s.h.driver().TakeLog() ==
        "info: administrator 10.0.0.1:5 began to drain flow 1, 5 tokens with nowCalls 5 are out\n"
        "info: administrator 10.0.0.1:5 ended the drain of flow 1: all done\n");
}

TEST_CASE("history shows ends whole, newest first, page by page") {
  Server s;
  s.h.Sleep(700);
  s.h.Call(s.admin, ReclaimFlowRequest(1, {1, "hung", 2}));
  s.h.Call(s.admin, ReclaimFlowRequest(1, {2, "late", 2}));
  const auto page = [&](const wire::PageParams& params) {
    const auto reply = wire::DecodeHistoryPage(s.h.Call(s.admin, HistoryRequest(1, params)).result);
    REQUIRE(reply.status().ToString() == "ok");
    return *reply;
  };
  const auto first = page({2, 0});
  REQUIRE(first.rows.size() == 2);
  const wire::HistoryRow& row = first.rows[0];
  CHECK(row.sequence == 3);
  CHECK(row.token_id == s.tokens[5]);
  CHECK(row.flow_id == 2);
  CHECK(row.reason == "admin");
  CHECK(row.note == "late");
  CHECK(row.name_space == "shop");
  CHECK(row.client_id == "a");
  CHECK(row.count == 1);
  CHECK(row.ended_ms == s.h.now().ms);
  CHECK(row.held_ms == 700);
  CHECK(row.issued_ms == row.ended_ms - 700);
  CHECK(first.rows[1].token_id == s.tokens[1]);
  const auto rest = page({2, first.next_cursor});
  REQUIRE(rest.rows.size() == 1);
  CHECK(rest.rows[0].token_id == s.tokens[0]);
  CHECK(rest.rows[0].sequence == 1);
  CHECK(rest.next_cursor == 0);
}

TEST_CASE("an answer to a reclaim waits until the ends are durable") {
  Server s;
  s.h.Send(s.admin, ReclaimFlowRequest(7, {1, "hung", 1000}));
  s.h.Turn();
  REQUIRE(s.h.BeginCommit());
  s.h.Turn();
  CHECK(s.h.TakeIds(s.admin).empty());
  s.h.FinishCommit();
  s.h.Turn();
  CHECK(s.h.TakeIds(s.admin) == std::vector<uint32_t>{7});
}

TEST_CASE("that a flow is gone is told when its end is durable, not before") {
  Server s;
  REQUIRE(s.h.engine().LoadRules({{"default", {}}}, s.h.now()).ok());
  s.h.Settle();
  const ConnectionId other = s.h.Connect("10.0.0.2:5");
  s.h.Send(s.admin, PurgeRequest(1, {1, 1000}));
  REQUIRE(s.h.BeginCommit());
  OutputBuffer flow;
  wire::EncodeFlowRequest(4, {1}, &flow);
  s.h.Send(other, PurgeRequest(2, {1, 1000}) + ReclaimFlowRequest(3, {1, "hung", 1000}) +
                      std::string(flow.view()));
  s.h.Turn();
  CHECK(s.h.TakeIds(other).empty());
  s.h.FinishCommit();
  s.h.Turn();
  const auto replies = s.h.TakeReplies(other);
  REQUIRE(replies.size() == 3);
  for (const EngineReply& reply : replies) {
    CHECK(reply.ErrorText().ends_with("flow_id 1 has neither a rule nor tokens"));
  }
}

TEST_CASE("a turn does only a few mass reclaims, and acquires go on in between") {
  Server s;
  for (int i = 0; i < 8000; ++i) s.h.Send(s.client, AcquireRequest(1, 1));
  s.h.Settle();
  s.h.TakeIds(s.client);
  const size_t before = s.h.core().books().tokens().size();
  REQUIRE(before > 7000);
  std::string requests;
  for (uint32_t n = 0; n < 7; ++n) requests += ReclaimFlowRequest(n, {1, "hung", 1000});
  s.h.Send(s.admin, requests);
  const size_t first_turn = before - s.h.core().books().tokens().size();
  CHECK(first_turn > 0);
  CHECK(first_turn <= 4000);
  s.h.Send(s.client, PlainRequest(99, Method::kPing));
  s.h.Turn();
  CHECK(s.h.TakeIds(s.client) == std::vector<uint32_t>{99});
  s.h.Settle();
  CHECK(s.h.TakeIds(s.admin).size() == 7);
  CHECK(s.h.core().books().tokens().size() == before - 7000);
}

TEST_CASE("a batch is full with the history it will get, before it has got it") {
  // The ends of 1000 tokens are 19,000 bytes, and their history is some 80,000 more.
  Limits limits;
  limits.batch_bytes_max = 30'000;
  EngineHarness h(limits);
  const ConnectionId client = h.Connect();
  for (int i = 0; i < 1000; ++i) h.Send(client, AcquireRequest(1, 1));
  h.Settle();
  h.TakeIds(client);
  REQUIRE(h.core().books().tokens().size() == 1000);
  const ConnectionId admin = h.Connect("10.0.0.1:5");
  h.Send(admin, ReclaimFlowRequest(1, {1, "hung", 1000}));
  CHECK(h.core().books().tokens().size() == 0);
  h.Send(client, PlainRequest(99, Method::kPing));
  CHECK_FALSE(h.driver().socket(client).reading);
  h.Settle();
  CHECK(h.driver().socket(client).reading);
  CHECK(h.TakeIds(client) == std::vector<uint32_t>{99});
}

TEST_CASE("what was reclaimed is in the history of the next start") {
  Server s;
  s.h.Call(s.admin, ReclaimFlowRequest(1, {1, "hung", 2}));
  s.h.Restart();
  CHECK(s.h.core().books().history().size() == 2);
  CHECK(HistoryOf(s.h.core())[0].note == "hung");
  CHECK(s.h.core().books().tokens().size() == 4);
}

std::string BackupRequest(uint32_t msgid, std::string_view to) {
  OutputBuffer out;
  wire::EncodeBackupRequest(msgid, {to}, &out);
  return std::string(out.view());
}

TEST_CASE("a backup is answered when it is done, and others are served meanwhile") {
  Server s;
  s.h.Send(s.admin, BackupRequest(7, "/backups/1"));
  s.h.Settle();
  CHECK(s.h.TakeReplies(s.admin).empty());
  REQUIRE(s.h.driver().backup.has_value());
  CHECK(s.h.driver().backup->to == "/backups/1");
  CHECK(s.h.driver().backup->by == "10.0.0.1:5");
  CHECK(s.h.driver().TakeLog().empty());  // Whether it begins is for the driver to find out.
  s.h.Take(s.client);
  CHECK(s.h.Call(s.client, BackupRequest(8, "/backups/2")).ErrorText() ==
        "OVERLOADED: backup: one is being made already");
  CHECK(s.h.driver().TakeLog().empty());
  const wire::BackupReply made{.batch_number = 3, .tokens = 6, .now_calls = 6, .files = 4};
  s.h.engine().OnBackupDone(s.admin, made, s.h.now());
  s.h.Turn();
  const std::vector<EngineReply> replies = s.h.TakeReplies(s.admin);
  REQUIRE(replies.size() == 1);
  CHECK(replies[0].msgid == 7);
  CHECK(*wire::DecodeBackupReply(replies[0].result) == made);
}

TEST_CASE("a client that has said its last word gets the answer to its backup, too") {
  Server s;
  s.h.Send(s.admin, BackupRequest(7, "/backups/1"));
  s.h.engine().OnEndOfInput(s.admin, s.h.now());
  s.h.Settle();
  CHECK(s.h.TakeReplies(s.admin).empty());
  CHECK_FALSE(s.h.driver().socket(s.admin).closed);
  s.h.engine().OnBackupDone(s.admin, Status::IoError("no room"), s.h.now());
  const std::vector<EngineReply> replies = s.h.TakeReplies(s.admin);
  REQUIRE(replies.size() == 1);
  CHECK(replies[0].msgid == 7);
  CHECK(s.h.driver().socket(s.admin).closed);
}

TEST_CASE("who has said its last word holds nothing and waits for nothing, but for its backup") {
  EngineHarness h(Limits(), {{.flow = 1, .count = 2, .resource_timeout_ms = 600'000}});
  const ConnectionId holder = h.Connect("10.0.0.1:1");
  const ConnectionId leaves = h.Connect("10.0.0.1:2");
  const uint64_t token = h.Take(holder);
  h.Take(leaves);
  wire::OutputBuffer acquire;
  wire::EncodeAcquireRequest(5, {.flow_id = 1, .count = 1, .wait_ms = 60'000}, &acquire);
  h.Send(leaves, acquire.view());
  h.Send(leaves, BackupRequest(7, "/backups/1"));
  h.Settle();
  REQUIRE(h.core().wait_queues().size() == 1);
  h.engine().OnEndOfInput(leaves, h.now());
  h.Settle();
  CHECK(h.core().wait_queues().size() == 0);
  const core::SessionTable& sessions = h.core().books().sessions();
  uint32_t online = 0;
  for (const auto& [id, slot] : sessions.by_id()) online += sessions.at(slot).online() ? 1 : 0;
  CHECK(online == 1);
  h.Call(holder, TokenRequest(9, Method::kRelease, token));
  CHECK(h.TakeReplies(leaves).empty());
  CHECK_FALSE(h.driver().socket(leaves).closed);
  h.engine().OnBackupDone(leaves, Status::IoError("no room"), h.now());
  CHECK(h.TakeReplies(leaves).size() == 1);
  CHECK(h.driver().socket(leaves).closed);
}

TEST_CASE("a backup that failed is told with its reason, and only to whoever asked") {
  Server s;
  const struct {
    Status status;
    std::string text;
  } cases[] = {
      {Status::InvalidArgument("/b exists"), "BAD_PARAMS: backup: /b exists"},
      {Status::IoError("no room"), "INTERNAL: io_error: backup: no room"},
      {Status::Corruption("bad"), "INTERNAL: corruption: backup: bad"},
  };
  for (const auto& c : cases) {
    s.h.Send(s.admin, BackupRequest(9, "/b"));
    s.h.Settle();
    s.h.driver().backup.reset();
    s.h.engine().OnBackupDone(s.admin, c.status, s.h.now());
    s.h.Turn();
    const std::vector<EngineReply> replies = s.h.TakeReplies(s.admin);
    REQUIRE(replies.size() == 1);
    CHECK(replies[0].ErrorText() == c.text);
  }
  // Its connection goes, and another one gets its id.
  s.h.Send(s.admin, BackupRequest(9, "/b"));
  s.h.Settle();
  s.h.Disconnect(s.admin);
  REQUIRE(s.h.Connect("10.0.0.2:6") == s.admin);
  s.h.engine().OnBackupDone(s.admin, wire::BackupReply{}, s.h.now());
  s.h.Turn();
  CHECK(s.h.TakeReplies(s.admin).empty());
}

wire::ClusterReply ClusterOf(std::vector<wire::ClusterMember> members) {
  return {.cluster = "c", .prefix = "p", .term = 4, .writer = "a:1", .members = std::move(members)};
}

TEST_CASE("the writer of a cluster tells the members, and a single server that it is none") {
  Server s;
  const std::string request = PlainRequest(8, Method::kCluster);
  CHECK(s.h.Call(s.admin, request).ErrorText() ==
        "UNSUPPORTED: cluster: this server is no member of a cluster");
  CHECK(s.h.Call(s.admin, PlainRequest(9, Method::kHandover)).ErrorText() ==
        "UNSUPPORTED: handover: this server is no member of a cluster");
  s.h.driver().cluster = ClusterOf({{.member = "a", .address = "a:1"}});
  const auto reply = wire::DecodeClusterReply(s.h.Call(s.admin, request).result);
  REQUIRE(reply.ok());
  CHECK(*reply == *s.h.driver().cluster);
}

TEST_CASE("a handover is answered with the term that ends, and is logged with who asked for it") {
  Server s;
  s.h.driver().cluster = ClusterOf({{.member = "a", .address = "a:1"}});
  s.h.driver().TakeLog();
  CHECK(s.h.Call(s.admin, PlainRequest(8, Method::kHandover)).ErrorText() ==
        "OVERLOADED: handover: nobody else lives");
  CHECK(s.h.driver().TakeLog() ==
        "warn: administrator 10.0.0.1:5 asked for a handover, and was "
        "refused: nobody else lives\n");
  CHECK(s.h.driver().handed_over_by.empty());
  s.h.driver().cluster->members.push_back({.member = "b", .address = "b:1"});
  const EngineReply reply = s.h.Call(s.admin, PlainRequest(9, Method::kHandover));
  CHECK(*wire::DecodeUintReply(reply.result) == 4);
  CHECK(s.h.driver().handed_over_by == "10.0.0.1:5");
  CHECK(s.h.driver().TakeLog() == "info: administrator 10.0.0.1:5 asked for a handover\n");
  CHECK(s.h.driver().last_topic_and_fields() == "act peer=10.0.0.1:5");
}

}  // namespace
}  // namespace nowcalls::engine
