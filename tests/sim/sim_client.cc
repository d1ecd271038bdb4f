#include "sim/sim_client.h"

#include <algorithm>

#include "sim/lanes.h"
#include "sim/sim_rules.h"
#include "wire/rows.h"

namespace nowcalls::sim {
namespace {

std::string Text(const SimClient::Wanted& wanted) {
  std::string text =
      "flow " + std::to_string(wanted.flow) + " count " + std::to_string(wanted.count);
  if (wanted.request_id != 0) text += " request id " + std::to_string(wanted.request_id);
  if (wanted.wait_ms) text += " wait " + std::to_string(*wanted.wait_ms);
  if (wanted.prioritized) text += " prioritized";
  if (wanted.hold_ms != 0) text += " hold " + std::to_string(wanted.hold_ms);
  return text;
}

// A prioritized one may be let wait by its rule.
AcquireTerms Terms(const SimClient::Wanted& wanted, LinkId link) {
  const int64_t by_rule_ms = wanted.prioritized ? kQueueingMs : 0;
  return {.link = link,
          .prioritized = wanted.prioritized,
          .wait_ms = wanted.wait_ms ? static_cast<int64_t>(*wanted.wait_ms) : by_rule_ms,
          .hold_ms = static_cast<int64_t>(wanted.hold_ms)};
}

}  // namespace

std::string SimClient::owner() const {
  return identity_.name_space + "/" + (named() ? identity_.client_id : "@" + peer());
}

void SimClient::Open(bool steady) {
  Connect(steady);
  if (!may_send()) return;
  Say("connects as " + owner());
  if (!identity_.says_hello) return;
  oracle_->SessionAsked(link(), owner());
  const std::optional<std::string_view> id =
      named() ? std::optional<std::string_view>(identity_.client_id) : std::nullopt;
  Call(
      [&](uint32_t msgid, wire::OutputBuffer* out) {
        wire::EncodeHelloRequest(
            msgid, {.name_space = identity_.name_space, .client_id = id, .lost = identity_.listens},
            out);
      },
      [this, at = link(), session = owner()](const wire::Response* response) {
        if (response == nullptr) return;
        if (response->error) return Misunderstood(response->error->message);
        const auto hello = wire::DecodeHelloReply(response->result);
        if (!hello.ok()) return Misunderstood(hello.status().message());
        Say("has " + std::to_string(hello->resumed_tokens) + " tokens back");
        oracle_->SessionSeen(at, session);
        if (!identity_.listens) return;
        oracle_->ListenerSeen(at, session, /*prompt=*/!network()->link(at).slow());
      });
}

void SimClient::Lost(const wire::LostNotice& notice) {
  Say("has lost a token of flow " + std::to_string(notice.flow_id) + ": " + notice.reason);
  Forget(notice.token_id);
  oracle_->LostTold(link(), {notice.token_id, notice.flow_id, notice.reason});
}

void SimClient::Acquire(const Wanted& wanted) {
  if (!identity_.says_hello) {
    oracle_->SessionAsked(link(), owner());
  }
  const OpId op =
      oracle_->AcquireAsked(owner(), wanted.flow, wanted.count, wanted.request_id,
                            Terms(wanted, network()->link(link()).slow() ? kNoLink : link()));
  if (wanted.request_id != 0) unsettled_[wanted.request_id] = wanted;
  Say("acquires " + Text(wanted));
  wire::AcquireParams params{.flow_id = FlowOfLane(wanted.flow),
                             .count = wanted.count,
                             .prioritized = wanted.prioritized,
                             .wait_ms = wanted.wait_ms,
                             .request_id = wanted.request_id,
                             .hold_ms = wanted.hold_ms};
  std::string key;
  if (IsKeyLane(wanted.flow)) {
    key = KeyOfLane(wanted.flow);
    params.param = Param{ParamType::kString, key};
  }
  Call([&](uint32_t msgid,
           wire::OutputBuffer* out) { wire::EncodeAcquireRequest(msgid, params, out); },
       [this, op, wanted, at = link(), session = owner()](const wire::Response* response) {
         if (response == nullptr) return;
         if (response->error) {
           Say("is told " + response->error->message);
           return oracle_->AcquireRefused(op);
         }
         const auto reply = wire::DecodeAcquireReply(response->result);
         if (!reply.ok()) return Misunderstood(reply.status().message());
         oracle_->SessionSeen(at, session);
         const Figures figures{.now_calls = static_cast<int64_t>(reply->now_calls),
                               .level = static_cast<int64_t>(reply->level)};
         if (reply->status == TokenStatus::kOk) {
           Granted(wanted, *reply);
           return oracle_->AcquireGranted(op, at, reply->token_id, reply->fence,
                                          static_cast<int64_t>(reply->hold_ms), figures);
         }
         Say("is refused flow " + std::to_string(wanted.flow) + ": " +
             std::string(TokenStatusName(reply->status)) + " " +
             std::string(RefusedByName(reply->refused_by)));
         // Another request with the same id may still be answered.
         if (reply->refused_by != RefusedBy::kSuperseded) unsettled_.erase(wanted.request_id);
         const std::string_view word = reply->refused_by == RefusedBy::kNone
                                           ? TokenStatusName(reply->status)
                                           : RefusedByName(reply->refused_by);
         oracle_->AcquireRefused(op, Refusal{.word = std::string(word), .figures = figures});
       });
}

void SimClient::Granted(const Wanted& wanted, const wire::AcquireReply& reply) {
  Say("has fence " + std::to_string(reply.fence) + " of flow " + std::to_string(wanted.flow) +
      ", now " + std::to_string(reply.now_calls) + " of " + std::to_string(reply.level) +
      ", to hold " + std::to_string(reply.hold_ms) + " ms");
  ++granted_;
  unsettled_.erase(wanted.request_id);
  const auto is_it = [&](const Held& held) { return held.token == reply.token_id; };
  if (std::any_of(held_.begin(), held_.end(), is_it)) return;
  held_.push_back({.token = reply.token_id, .wanted = wanted});
}

void SimClient::Forget(uint64_t token) {
  const auto is_it = [&](const Held& held) { return held.token == token; };
  held_.erase(std::remove_if(held_.begin(), held_.end(), is_it), held_.end());
  constexpr size_t kPastMax = 20;
  if (past_.size() >= kPastMax) past_.erase(past_.begin());
  past_.push_back(token);
}

void SimClient::Request(int64_t flow, int64_t count, bool prioritized, bool misfit) {
  Say("requests " + std::to_string(count) + " of flow " + std::to_string(flow));
  const CallsId calls =
      oracle_->calls().Asked(oracle_->Tick(), {.calls = {{flow, count}}, .misfit = misfit});
  const wire::RateParams params{.flow_id = flow, .count = count, .prioritized = prioritized};
  Call(
      [&](uint32_t msgid, wire::OutputBuffer* out) { wire::EncodeRateRequest(msgid, params, out); },
      AfterCalls(calls));
}

void SimClient::RequestValues(const std::vector<int64_t>& lanes, int64_t count, bool misfit) {
  CallsAsked asked{.calls = {}, .misfit = misfit};
  std::vector<std::string> keys;
  for (const int64_t lane : lanes) {
    asked.calls[lane] += count;
    keys.push_back(KeyOfLane(lane));
    Say("requests " + std::to_string(count) + " of flow " + std::to_string(lane));
  }
  const CallsId calls = oracle_->calls().Asked(oracle_->Tick(), std::move(asked));
  std::vector<Param> values;
  for (const std::string& key : keys) values.push_back({ParamType::kString, key});
  Call(
      [&](uint32_t msgid, wire::OutputBuffer* out) {
        wire::EncodeValueRateRequest(msgid, {.flow_id = FlowOfLane(lanes.front()), .count = count},
                                     values, out);
      },
      AfterCalls(calls));
}

SimClient::Answer SimClient::AfterCalls(CallsId calls) {
  return [this, calls](const wire::Response* response) {
    if (response == nullptr) return;
    if (response->error) return Misunderstood(response->error->message);
    const auto reply = wire::DecodeRateReply(response->result);
    if (!reply.ok()) return Misunderstood(reply.status().message());
    Say("may call: " + std::string(TokenStatusName(reply->status)) + " " +
        std::string(RefusedByName(reply->refused_by)));
    oracle_->calls().Answered(oracle_->Tick(), calls, reply->status,
                              static_cast<int64_t>(reply->wait_ms));
  };
}

void SimClient::Release(uint64_t token) {
  const OpId op = oracle_->ReleaseAsked(owner(), token);
  Say("releases");
  for (Held& held : held_) held.releasing |= held.token == token;
  Call(
      [&](uint32_t msgid, wire::OutputBuffer* out) {
        wire::EncodeTokenRequest(msgid, wire::Method::kRelease, token, out);
      },
      [this, op, token](const wire::Response* response) {
        if (response == nullptr) return;
        if (response->error) return Misunderstood(response->error->message);
        const auto status = wire::DecodeStatusReply(response->result);
        if (!status.ok()) return Misunderstood(status.status().message());
        Say("released: " + std::string(TokenStatusName(*status)));
        Forget(token);
        oracle_->ReleaseAnswered(op, *status == TokenStatus::kReleaseOk);
      });
}

void SimClient::Keep(uint64_t token) {
  const OpId op = oracle_->KeepAsked(owner(), token, link());
  Say("keeps");
  Call(
      [&](uint32_t msgid, wire::OutputBuffer* out) {
        wire::EncodeTokenRequest(msgid, wire::Method::kKeep, token, out);
      },
      [this, op, token](const wire::Response* response) {
        if (response == nullptr) return;
        if (response->error) return Misunderstood(response->error->message);
        const auto reply = wire::DecodeKeepReply(response->result);
        if (!reply.ok()) return Misunderstood(reply.status().message());
        const bool kept = reply->status == TokenStatus::kOk;
        Say("kept: " + std::string(TokenStatusName(reply->status)));
        if (!kept) Forget(token);
        oracle_->KeepAnswered(op, kept, static_cast<int64_t>(reply->hold_ms));
      });
}

void SimClient::Cancel(uint64_t request_id) {
  const OpId op = oracle_->CancelAsked(owner(), request_id, link());
  Say("cancels request id " + std::to_string(request_id));
  Call([&](uint32_t msgid,
           wire::OutputBuffer* out) { wire::EncodeCancelRequest(msgid, request_id, out); },
       [this, op, request_id](const wire::Response* response) {
         if (response == nullptr) return;
         if (response->error) return Misunderstood(response->error->message);
         const auto status = wire::DecodeStatusReply(response->result);
         if (!status.ok()) return Misunderstood(status.status().message());
         Say("cancelled: " + std::string(TokenStatusName(*status)));
         unsettled_.erase(request_id);
         for (const Held& held : std::vector<Held>(held_)) {
           if (held.wanted.request_id == request_id) Forget(held.token);
         }
         oracle_->CancelAnswered(op, *status == TokenStatus::kReleaseOk);
       });
}

void SimClient::Ping() {
  Call([&](uint32_t msgid,
           wire::OutputBuffer* out) { wire::EncodePlainRequest(msgid, wire::Method::kPing, out); },
       [this](const wire::Response* response) {
         if (response != nullptr && response->error) Misunderstood(response->error->message);
       });
}

void SimClient::ListFlows() {
  Say("lists flows");
  Call(
      [&](uint32_t msgid, wire::OutputBuffer* out) {
        wire::EncodePageRequest(msgid, wire::Method::kFlows, {.limit = kListRowsMax}, out);
      },
      [this](const wire::Response* response) {
        if (response == nullptr) return;
        if (response->error) return Misunderstood(response->error->message);
        const auto page = wire::DecodeFlowPage(response->result);
        if (!page.ok()) return Misunderstood(page.status().message());
        Say("sees " + std::to_string(page->rows.size()) + " flows");
      });
}

void SimClient::ListWaiters() {
  Say("lists waiters");
  const WaitersLook look = oracle_->WaitersAsked();
  Call(
      [&](uint32_t msgid, wire::OutputBuffer* out) {
        wire::EncodeWaitersRequest(msgid, {.flow_id = {}, .client_id = {}, .limit = kListRowsMax},
                                   out);
      },
      [this, look](const wire::Response* response) {
        if (response == nullptr) return;
        if (response->error) return Misunderstood(response->error->message);
        const auto rows = wire::DecodeWaiterRows(response->result);
        if (!rows.ok()) return Misunderstood(rows.status().message());
        Say("sees " + std::to_string(rows->size()) + " waiters");
        std::vector<SeenWaiter> waiters;
        for (const wire::WaiterRow& row : *rows) {
          const int64_t flow = row.param ? LaneOfText(row.flow_id, row.param->bytes) : row.flow_id;
          waiters.push_back({.owner = row.name_space + "/" + row.client_id,
                             .flow = flow,
                             .count = row.count,
                             .prioritized = row.prioritized,
                             .place = row.place});
        }
        oracle_->WaitersTold(look, waiters);
      });
}

void SimClient::Left() {
  Say("is disconnected");
  if (named()) return;
  held_.clear();
  unsettled_.clear();
}

void SimClient::Misunderstood(const std::string& what) {
  oracle_->Violation("I3 " + name() + " was sent what it did not ask for: " + what);
}

}  // namespace nowcalls::sim
