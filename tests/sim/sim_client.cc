#include "sim/sim_client.h"

#include <algorithm>

#include "sim/lanes.h"
#include "sim/sim_rules.h"
#include "wire/rows.h"

namespace nowcalls::sim {
namespace {

std::string Text(const SimClient::Wanted& wanted) {
  std::string text;
  for (const Item& item : wanted.all) {
    text += "flow " + std::to_string(item.flow) + " count " + std::to_string(item.count) + ", ";
  }
  for (const Item& rate : wanted.rates) {
    text += std::to_string(rate.count) + " calls of flow " + std::to_string(rate.flow) + ", ";
  }
  if (text.empty()) {
    text = "flow " + std::to_string(wanted.flow) + " count " + std::to_string(wanted.count);
  } else {
    text = "all of " + text.substr(0, text.size() - 2);
  }
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
  return OwnerText(identity_.name_space, named() ? identity_.client_id : "@" + peer(),
                   identity_.instance);
}

void SimClient::Open(bool steady) {
  Connect(steady);
  if (!may_send()) return;
  if (identity_.restarts) ++identity_.instance;
  Say("connects as " + owner());
  if (!identity_.says_hello) return;
  oracle_->SessionAsked(link(), owner());
  const std::optional<std::string_view> id =
      named() ? std::optional<std::string_view>(identity_.client_id) : std::nullopt;
  Call(
      [&](uint32_t msgid, wire::OutputBuffer* out) {
        wire::EncodeHelloRequest(msgid,
                                 {.name_space = identity_.name_space,
                                  .client_id = id,
                                  .lost = identity_.listens,
                                  .instance = identity_.instance},
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
  if (wanted.request_id != 0) unsettled_[wanted.request_id] = wanted;
  Say("acquires " + Text(wanted));
  wanted.all.empty() ? AcquireOne(wanted) : AcquireAll(wanted);
}

void SimClient::AcquireAll(const Wanted& wanted) {
  AskedAll asked;
  asked.ops = oracle_->On(link()).AcquireAllAsked(
      owner(), wanted.all, wanted.request_id,
      Terms(wanted, network()->link(link()).slow() ? kNoLink : link()));
  for (const Item& rate : wanted.rates) {
    asked.calls.push_back(oracle_->On(link()).CallsAsked({.calls = {{rate.flow, rate.count}}}));
  }
  std::vector<Item> all = wanted.all;
  all.insert(all.end(), wanted.rates.begin(), wanted.rates.end());
  wire::AcquireAllParams params{.items = std::vector<wire::AcquireAllParams::Item>(all.size()),
                                .prioritized = wanted.prioritized,
                                .wait_ms = wanted.wait_ms,
                                .request_id = wanted.request_id,
                                .hold_ms = wanted.hold_ms};
  std::vector<std::string> keys(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const Item& item = all[i];
    params.items[i].flow_id = FlowOfLane(item.flow);
    params.items[i].count = item.count;
    params.items[i].rate = i >= wanted.all.size();
    if (!IsKeyLane(item.flow)) continue;
    keys[i] = KeyOfLane(item.flow);
    params.items[i].param = Param{ParamType::kString, keys[i]};
  }
  Call([&](uint32_t msgid,
           wire::OutputBuffer* out) { wire::EncodeAcquireAllRequest(msgid, params, out); },
       [this, asked, wanted, at = link(), session = owner()](const wire::Response* response) {
         if (response == nullptr) return;
         if (response->error) {
           Say("is told " + response->error->message);
           for (const OpId op : asked.ops) oracle_->AcquireRefused(op);
           for (const CallsId calls : asked.calls) oracle_->calls().GroupRefused(calls);
           return;
         }
         const auto reply = wire::DecodeAcquireAllReply(response->result);
         if (!reply.ok()) return Misunderstood(reply.status().message());
         oracle_->SessionSeen(at, session);
         AllAnswered(wanted, asked, at, *reply);
       });
}

// A rate is taken with the grant, unless a grant before is repeated.
void SimClient::RatesGranted(const Wanted& wanted, const AskedAll& asked,
                             const wire::AcquireAllReply& reply) {
  for (size_t i = 0; i < asked.calls.size(); ++i) {
    const wire::AcquireAllReply::Token& rate = reply.tokens[asked.ops.size() + i];
    if (rate.token_id != 0 || rate.fence != 0) {
      oracle_->Violation("S4 " + name() + " was given a token for a rate of " + Text(wanted));
    }
    if (wanted.request_id != 0 || rate.hold_ms > 0) {
      oracle_->calls().MayHavePassed(asked.calls[i]);
    } else {
      oracle_->calls().Answered(oracle_->Tick(), asked.calls[i], TokenStatus::kOk, 0);
    }
  }
}

// The rate that is named is judged, unless a token of the same flow may be meant.
void SimClient::RatesRefused(const Wanted& wanted, const AskedAll& asked,
                             const wire::AcquireAllReply& reply) {
  std::vector<size_t> named;
  for (size_t i = 0; i < asked.calls.size(); ++i) {
    if (FlowOfLane(wanted.rates[i].flow) == reply.flow_id) named.push_back(i);
  }
  const bool of_token = std::any_of(wanted.all.begin(), wanted.all.end(), [&](const Item& item) {
    return FlowOfLane(item.flow) == reply.flow_id;
  });
  for (size_t i = 0; i < asked.calls.size(); ++i) {
    const bool judged = named.size() == 1 && named.front() == i && !of_token &&
                        reply.status != TokenStatus::kNotAvailable;
    if (judged) {
      oracle_->calls().Answered(oracle_->Tick(), asked.calls[i], reply.status, 0);
    } else {
      oracle_->calls().GroupRefused(asked.calls[i]);
    }
  }
}

// A refusal is judged by the item whose flow it names, or by the first; the others were not in its
// way.
void SimClient::AllAnswered(const Wanted& wanted, const AskedAll& asked, LinkId at,
                            const wire::AcquireAllReply& reply) {
  const std::vector<OpId>& ops = asked.ops;
  const bool granted = reply.status == TokenStatus::kOk;
  if (reply.tokens.size() != (granted ? ops.size() + asked.calls.size() : 0)) {
    return oracle_->Violation("I3 " + name() + " was given " + std::to_string(reply.tokens.size()) +
                              " tokens of " + Text(wanted));
  }
  if (granted) {
    ++granted_;
    unsettled_.erase(wanted.request_id);
    for (size_t i = 0; i < ops.size(); ++i) {
      const wire::AcquireAllReply::Token& token = reply.tokens[i];
      Say("has fence " + std::to_string(token.fence) + " of flow " +
          std::to_string(wanted.all[i].flow) + ", to hold " + std::to_string(token.hold_ms) +
          " ms");
      Hold(wanted, token.token_id);
      oracle_->AcquireGranted(ops[i], at, token.token_id, token.fence,
                              static_cast<int64_t>(token.hold_ms));
    }
    return RatesGranted(wanted, asked, reply);
  }
  RatesRefused(wanted, asked, reply);
  const std::string word = RefusalWord(reply.status, reply.refused_by);
  Say("is refused all, for flow " + std::to_string(reply.flow_id) + ": " + word);
  if (reply.refused_by != RefusedBy::kSuperseded) unsettled_.erase(wanted.request_id);
  const Refusal refusal{.word = word,
                        .figures = {.now_calls = static_cast<int64_t>(reply.now_calls),
                                    .level = static_cast<int64_t>(reply.level)}};
  // A flow may be there with several keys: one of them is in the way, as the word shows.
  std::vector<OpId> named;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (FlowOfLane(wanted.all[i].flow) == reply.flow_id) named.push_back(ops[i]);
  }
  if (reply.flow_id == 0) named.push_back(ops.front());
  const bool by_rate = std::any_of(wanted.rates.begin(), wanted.rates.end(), [&](const Item& item) {
    return FlowOfLane(item.flow) == reply.flow_id;
  });
  if (named.empty() && !by_rate) {
    Misunderstood("a refusal by flow " + std::to_string(reply.flow_id));
  }
  for (const OpId op : ops) {
    const bool judged = named.size() == 1 && op == named.front() && !by_rate;
    oracle_->AcquireRefused(op, judged ? std::optional<Refusal>(refusal) : std::nullopt);
  }
}

void SimClient::AcquireOne(const Wanted& wanted) {
  const OpId op = oracle_->On(link()).AcquireAsked(
      owner(), wanted.flow, wanted.count, wanted.request_id,
      Terms(wanted, network()->link(link()).slow() ? kNoLink : link()));
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
         const std::string word = RefusalWord(reply->status, reply->refused_by);
         oracle_->AcquireRefused(op, Refusal{.word = word, .figures = figures});
       });
}

void SimClient::Granted(const Wanted& wanted, const wire::AcquireReply& reply) {
  Say("has fence " + std::to_string(reply.fence) + " of flow " + std::to_string(wanted.flow) +
      ", now " + std::to_string(reply.now_calls) + " of " + std::to_string(reply.level) +
      ", to hold " + std::to_string(reply.hold_ms) + " ms");
  ++granted_;
  unsettled_.erase(wanted.request_id);
  Hold(wanted, reply.token_id);
}

void SimClient::Hold(const Wanted& wanted, uint64_t token) {
  const auto is_it = [&](const Held& held) { return held.token == token; };
  if (std::any_of(held_.begin(), held_.end(), is_it)) return;
  held_.push_back({.token = token, .wanted = wanted});
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
      oracle_->On(link()).CallsAsked({.calls = {{flow, count}}, .misfit = misfit});
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
  const CallsId calls = oracle_->On(link()).CallsAsked(std::move(asked));
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
  const OpId op = oracle_->On(link()).ReleaseAsked(owner(), token);
  Say("releases");
  for (Held& held : held_) held.releasing |= held.token == token;
  Call(
      [&](uint32_t msgid, wire::OutputBuffer* out) {
        // Whatever it says of its call, the token ends.
        const auto outcome = static_cast<CallOutcome>(token % kCallOutcomeCount);
        wire::EncodeReleaseRequest(msgid, token, outcome, out);
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
  const OpId op = oracle_->On(link()).KeepAsked(owner(), token, link());
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
  const OpId op = oracle_->On(link()).CancelAsked(owner(), request_id, link());
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
  const WaitersLook look = oracle_->On(link()).WaitersAsked();
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
          // A client id of one instance is shown without it.
          const std::string owner = row.instance
                                        ? OwnerText(row.name_space, row.client_id, *row.instance)
                                        : AllInstances(row.name_space, row.client_id);
          waiters.push_back({.owner = owner,
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
  if (named() && !identity_.restarts) return;
  held_.clear();
  unsettled_.clear();
}

void SimClient::Misunderstood(const std::string& what) {
  oracle_->Violation("I3 " + name() + " was sent what it did not ask for: " + what);
}

}  // namespace nowcalls::sim
