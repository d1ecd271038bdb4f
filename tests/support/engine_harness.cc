#include "support/engine_harness.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "wire/splitter.h"

namespace nowcalls::testing {
namespace {

template <typename T>
T Decoded(Result<T> decoded) {
  REQUIRE(decoded.status().ToString() == "ok");
  return std::move(decoded).value();
}

std::string Text(const wire::OutputBuffer& buffer) { return std::string(buffer.view()); }

}  // namespace

std::string HelloRequest(uint32_t msgid, std::string_view name_space,
                         std::optional<std::string_view> client_id) {
  wire::OutputBuffer out;
  wire::EncodeHelloRequest(msgid, {.name_space = name_space, .client_id = client_id}, &out);
  return Text(out);
}

std::string PlainRequest(uint32_t msgid, wire::Method method) {
  wire::OutputBuffer out;
  wire::EncodePlainRequest(msgid, method, &out);
  return Text(out);
}

std::string AcquireRequest(uint32_t msgid, int64_t flow, int64_t count) {
  wire::OutputBuffer out;
  wire::EncodeAcquireRequest(msgid, {.flow_id = flow, .count = count}, &out);
  return Text(out);
}

std::string TokenRequest(uint32_t msgid, wire::Method method, uint64_t token) {
  wire::OutputBuffer out;
  wire::EncodeTokenRequest(msgid, method, token, &out);
  return Text(out);
}

std::string AcquireRequests(uint32_t first, uint32_t last) {
  std::string bytes;
  for (uint32_t id = first; id <= last; ++id) bytes += AcquireRequest(id, 1);
  return bytes;
}

std::string TokenPageRequests(uint32_t first, uint32_t last, uint32_t rows) {
  wire::TokensParams params;
  params.page.limit = rows;
  wire::OutputBuffer out;
  for (uint32_t id = first; id <= last; ++id) wire::EncodeTokensRequest(id, params, &out);
  return Text(out);
}

std::vector<uint32_t> Ids(uint32_t first, uint32_t last) {
  std::vector<uint32_t> ids(last - first + 1);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

access::Entry PrincipalEntry(std::string_view name, access::Role role,
                             std::optional<std::vector<std::string>> namespaces,
                             std::string_view secret) {
  access::Entry entry{
      .principal = {.name = std::string(name), .role = role, .namespaces = std::move(namespaces)},
      .certificates = {std::string(name)}};
  if (!secret.empty()) entry.secrets.push_back(access::DigestOf(secret));
  return entry;
}

wire::AcquireReply EngineReply::acquire() const {
  return Decoded(wire::DecodeAcquireReply(result));
}
TokenStatus EngineReply::status() const { return Decoded(wire::DecodeStatusReply(result)); }
wire::KeepReply EngineReply::keep() const { return Decoded(wire::DecodeKeepReply(result)); }
wire::HelloReply EngineReply::hello() const { return Decoded(wire::DecodeHelloReply(result)); }
uint64_t EngineReply::number() const { return Decoded(wire::DecodeUintReply(result)); }

std::string EngineReply::ErrorText() const {
  if (!error) return "ok";
  return std::string(wire::ErrorCodeName(error->code)) + ": " + error->message;
}

EngineHarness::EngineHarness(const Limits& limits, const std::vector<RuleOptions>& rules)
    : limits_(limits),
      core_options_(HarnessOptions()),
      store_(ledger::Format{.token_id_key = core_options_.token_id_key}) {
  core_options_.limits = limits;
  StartEngine();
  if (rules.empty()) return;
  auto parsed = core::ParseRules(RulesJson(rules), "default");
  REQUIRE(parsed.status().ToString() == "ok");
  REQUIRE(engine_->LoadRules({{"default", *std::move(parsed)}}, now_).ToString() == "ok");
  Settle();
  driver_.TakeLog();
}

void EngineHarness::StartEngine() {
  driver_.commit = nullptr;
  core_ = std::make_unique<core::Core>(core_options_);
  REQUIRE(LoadCore(&store_, now_, core_.get()).ToString() == "ok");
  engine_ = std::make_unique<engine::Engine>(
      engine::EngineOptions{
          .limits = limits_, .version = "9.9.9", .durability = "sync", .data_dir = "/data\xff"},
      core_.get(), &driver_, now_);
}

void EngineHarness::Restart() {
  engine_.reset();
  driver_ = FakeDriver();
  StartEngine();
}

engine::ConnectionId EngineHarness::Connect(std::string_view peer) {
  const std::string host(peer.substr(0, peer.rfind(':')));
  return Connect(
      net::Peer{.name = std::string(peer), .host = host, .loopback = host == "127.0.0.1"});
}

engine::ConnectionId EngineHarness::Connect(net::Peer peer) {
  const auto id = engine_->OnConnect(std::move(peer), now_);
  REQUIRE(id.has_value());
  driver_.Forget(*id);
  return *id;
}

engine::ConnectionId EngineHarness::ConnectAs(std::string_view principal) {
  return Connect(net::Peer{.name = "10.0.0.1:" + std::to_string(++ports_),
                           .host = "10.0.0.1",
                           .encrypted = true,
                           .certificate = std::string(principal)});
}

void EngineHarness::SetAccess(std::vector<access::Entry> principals) {
  engine_->SetAccess(
      access::Gate(std::make_shared<const access::AccessList>(std::move(principals))));
}

void EngineHarness::Disconnect(engine::ConnectionId id) { engine_->OnDisconnect(id, now_); }

EngineReply EngineHarness::Call(engine::ConnectionId id, std::string_view bytes) {
  Send(id, bytes);
  Settle();
  auto replies = TakeReplies(id);
  REQUIRE(replies.size() == 1);
  return std::move(replies[0]);
}

uint64_t EngineHarness::Take(engine::ConnectionId id, int64_t flow) {
  const wire::AcquireReply reply = Call(id, AcquireRequest(1, flow)).acquire();
  REQUIRE(TokenStatusName(reply.status) == "OK");
  return reply.token_id;
}

void EngineHarness::Turn() {
  engine_->ResumeInput(now_);
  if (engine_->NextDeadline() <= now_) engine_->OnTime(now_);
  if (const auto request = engine_->BeginScan(now_)) {
    ledger::ScanResult result;
    store_.Scan(*request, &result);
    REQUIRE(engine_->OnScanDone(result, now_).ToString() == "ok");
  }
  engine_->TurnEnd();
}

bool EngineHarness::BeginCommit() {
  const ledger::CommitBatch* batch =
      engine_->BeginCommit({.boottime_ms = now_.ms, .wall_ms = now_.ms, .boot_id = {}}, now_);
  if (batch == nullptr) return false;
  REQUIRE(driver_.commit == nullptr);
  driver_.commit = batch;
  return true;
}

void EngineHarness::FinishCommit() {
  REQUIRE(driver_.commit != nullptr);
  REQUIRE(store_.Commit(*std::exchange(driver_.commit, nullptr)).ToString() == "ok");
  engine_->OnCommitDone(now_);
}

void EngineHarness::Settle() {
  for (int rounds = 0; rounds < 100'000; ++rounds) {
    Turn();
    BeginCommit();
    if (driver_.commit != nullptr) FinishCommit();
    if (engine_->idle() && engine_->NextDeadline() > now_) return;
  }
  FAIL("the engine does not come to rest");
}

void EngineHarness::Pass(int64_t duration_ms) {
  constexpr int64_t kStepMs = 50;
  for (; duration_ms > 0; duration_ms -= kStepMs) {
    now_ = now_ + std::min(duration_ms, kStepMs);
    Settle();
  }
}

std::vector<EngineReply> EngineHarness::TakeReplies(engine::ConnectionId id) {
  const std::string bytes = std::exchange(driver_.socket(id).written, {});
  std::vector<EngineReply> replies;
  wire::MessageSplitter splitter(kReplyBytesMax, UINT32_MAX / 2);
  for (std::string_view rest = bytes; !rest.empty();) {
    size_t size = 0;
    REQUIRE(splitter.Next(rest, &size) == wire::MessageSplitter::Outcome::kMessage);
    const auto response = wire::DecodeResponse(rest.substr(0, size));
    REQUIRE(response.status().ToString() == "ok");
    replies.push_back({response->msgid, response->error, std::string(response->result)});
    rest.remove_prefix(size);
  }
  return replies;
}

std::vector<uint32_t> EngineHarness::TakeIds(engine::ConnectionId id) {
  std::vector<uint32_t> ids;
  for (const EngineReply& reply : TakeReplies(id)) ids.push_back(reply.msgid);
  return ids;
}

}  // namespace nowcalls::testing
