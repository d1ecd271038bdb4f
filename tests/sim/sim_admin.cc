#include "sim/sim_admin.h"

#include <map>

#include "sim/lanes.h"
#include "wire/admin_messages.h"

namespace nowcalls::sim {

bool SimAdmin::Ready() {
  if (!connected()) Connect(/*steady=*/true);
  return may_send() && unanswered() == 0;
}

void SimAdmin::Misunderstood(const std::string& what) {
  oracle_->Violation("I3 the administrator was sent what was not asked for: " + what);
}

void SimAdmin::LoadRules(const std::vector<SimRule>& rules, const std::string& name_space) {
  const std::string json = RulesJson(rules, name_space);
  trace_->Add("admin: loads ", name_space, " ", json);
  const bool counts = oracle_->On(link()).LevelsAsked(LoadChanges(rules, name_space));
  answered_ = false;
  Call([&](uint32_t msgid,
           wire::OutputBuffer* out) { wire::EncodeRulesLoadRequest(msgid, name_space, json, out); },
       [this, counts](const wire::Response* response) {
         if (response == nullptr) return;
         answered_ = true;
         if (response->error) Misunderstood(response->error->message);
         trace_->Add("admin: rules are loaded");
         if (counts) oracle_->levels().Answered(oracle_->Tick(), !response->error);
       });
}

void SimAdmin::Drain(int64_t flow, std::optional<FlowKind> kind, bool on) {
  trace_->Add("admin: ", on ? "drains" : "stops draining", " flow ", flow,
              kind ? " of one kind" : "");
  std::map<int64_t, LevelHistory::Change> changes;
  for (const int64_t lane : LanesOf(flow)) {
    if (kind.value_or(FlowKindIf(IsKeyLane(lane))) != FlowKindIf(IsKeyLane(lane))) continue;
    changes[lane] = [on](LevelSetting setting) {
      setting.draining = setting.in_force && on;
      return setting;
    };
  }
  const bool counts = oracle_->On(link()).LevelsAsked(changes);
  answered_ = false;
  Call(
      [&](uint32_t msgid, wire::OutputBuffer* out) {
        wire::EncodeDrainRequest(msgid, {.flow_id = flow, .on = on, .kind = kind}, out);
      },
      [this, counts](const wire::Response* response) {
        if (response == nullptr) return;
        answered_ = true;
        if (response->error) Misunderstood(response->error->message);
        if (counts) oracle_->levels().Answered(oracle_->Tick(), !response->error);
      });
}

void SimAdmin::Reclaim(uint64_t token) {
  trace_->Add("admin: reclaims a token");
  const OpId op = oracle_->On(link()).ReleaseAsked({}, token);
  Call(
      [&](uint32_t msgid, wire::OutputBuffer* out) {
        wire::EncodeReclaimRequest(msgid, {.token_id = token, .reason = "simulated"}, out);
      },
      [this, op](const wire::Response* response) {
        if (response == nullptr) return;
        if (response->error) return Misunderstood(response->error->message);
        const auto status = wire::DecodeStatusReply(response->result);
        if (!status.ok()) return Misunderstood(status.status().message());
        oracle_->ReleaseAnswered(op, *status == TokenStatus::kReleaseOk);
      });
}

// A flow or client that the server does not know is an error, and nothing was done.
RpcCaller::Answer SimAdmin::AfterReclaim(OpId op) {
  return [this, op](const wire::Response* response) {
    if (response == nullptr) return;
    if (response->error) return oracle_->ReclaimAllAnswered(op, false, false);
    const auto reply = wire::DecodeReclaimedReply(response->result);
    if (!reply.ok()) return Misunderstood(reply.status().message());
    trace_->Add("admin: ", reply->reclaimed, " reclaimed", reply->more ? ", more are left" : "");
    oracle_->ReclaimAllAnswered(op, true, reply->more);
  };
}

void SimAdmin::ReclaimFlow(int64_t flow, std::optional<FlowKind> kind, uint32_t limit) {
  trace_->Add("admin: reclaims flow ", flow, kind ? " of one kind" : "");
  const OpId op = oracle_->On(link()).ReclaimAllAsked(flow, {}, TakeBack::kReclaim, kind);
  Call(
      [&](uint32_t msgid, wire::OutputBuffer* out) {
        wire::EncodeReclaimFlowRequest(
            msgid, {.flow_id = flow, .reason = "simulated", .limit = limit, .kind = kind}, out);
      },
      AfterReclaim(op));
}

void SimAdmin::ReclaimClient(const std::string& name_space, const std::string& client_id,
                             std::optional<uint64_t> instance, uint32_t limit) {
  const std::string owner =
      instance ? OwnerText(name_space, client_id, *instance) : AllInstances(name_space, client_id);
  trace_->Add("admin: reclaims client ", owner);
  const OpId op = oracle_->On(link()).ReclaimAllAsked(0, owner);
  Call(
      [&](uint32_t msgid, wire::OutputBuffer* out) {
        wire::EncodeReclaimClientRequest(msgid,
                                         {.name_space = name_space,
                                          .client_id = client_id,
                                          .reason = "simulated",
                                          .limit = limit,
                                          .instance = instance},
                                         out);
      },
      AfterReclaim(op));
}

void SimAdmin::Purge(int64_t flow, FlowKind kind) {
  trace_->Add("admin: purges flow ", flow, " ", FlowKindName(kind));
  const OpId op = oracle_->On(link()).ReclaimAllAsked(flow, {}, TakeBack::kPurge, kind);
  Call(
      [&](uint32_t msgid, wire::OutputBuffer* out) {
        wire::EncodePurgeRequest(msgid, {.flow_id = flow, .kind = kind}, out);
      },
      AfterReclaim(op));
}

}  // namespace nowcalls::sim
