// rpc::Service: shared by all MessagePack-RPC connections. rpc::Call: one request.
//
// Thread: loop.
#ifndef NOWCALLS_ENGINE_RPC_SERVICE_H_
#define NOWCALLS_ENGINE_RPC_SERVICE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/core.h"
#include "engine/connection.h"
#include "engine/driver.h"
#include "engine/late_answers.h"
#include "engine/outputs.h"
#include "engine/rpc/look_ahead.h"
#include "engine/rpc/rule_source.h"
#include "nowcalls/flow_kind.h"
#include "nowcalls/rule_source.h"
#include "nowcalls/status.h"
#include "wire/figures.h"
#include "wire/messages.h"
#include "wire/method.h"
#include "wire/param_list.h"

namespace nowcalls::engine {
class Identities;
}

namespace nowcalls::engine::rpc {

struct MethodRow;

struct Service {
  Service(core::Core* the_core, RuleSink* rules_sink, Outputs* the_outputs, LateAnswers* the_late,
          Driver* the_driver, Identities* the_identities, std::string the_version,
          std::function<std::vector<wire::FigureRow>()> the_figures);

  core::Core* const core;
  Outputs* const outputs;
  LateAnswers* const late;
  Driver* const driver;
  Identities* const identities;
  const std::string version;
  const std::function<std::vector<wire::FigureRow>()> figures;
  RpcRuleSource rules;
  LookAhead look_ahead;
  // Messages since the server started, by wire::Method.
  std::array<uint64_t, wire::kMethodCount> requests{};
  wire::ParamList params;        // Of the request at hand.
  wire::AcquireAllParams group;  // Likewise.
};

// Of a connection's requests that no call of the core answers.
struct LateMsgids {
  std::optional<uint32_t> backup;        // It waits for the backup's end.
  std::optional<uint32_t> wrong_secret;  // The identify that waits for its answer.
};

struct Call {
  Service& service;
  Connection* connection;
  const wire::Envelope& request;
  const core::Step& step;
  const MethodRow& method;
  LateMsgids* late;

  core::Core* core() const { return service.core; }
  // REQUIRES: the request is no notification.
  wire::OutputBuffer* Immediate() const { return service.outputs->Immediate(connection); }
  wire::OutputBuffer* AfterCommit() const { return service.outputs->AfterCommit(connection); }
};

// False: the principal may not, and the call was answered so. A flow that does not exist passes.
// `item`: of a list, for the message.
bool MayReach(const Call& call, std::string_view name_space);
bool MayReach(const Call& call, const FlowKey& key, std::optional<size_t> item = std::nullopt);
// Takes the flow of `name`, unless that is empty (flow_name.h), and leaves the kinds that the
// principal may reach. False: none, and the call was answered so.
bool NarrowToReach(const Call& call, std::string_view name, FlowChoice* choice);
// PERMISSION; `why` continues the method's name. Counts, and logs an administrator's act.
void ReplyNotAllowed(const Call& call, const std::string& why);

// Notifications get no reply.
void ReplyError(const Call& call, const wire::RequestError& error);
// For errors about state that records on their way may have made.
void ReplyErrorAfterCommit(const Call& call, const wire::RequestError& error);
void ReplyStatus(const Call& call, TokenStatus status);
wire::RequestError ErrorOf(const Status& status);

}  // namespace nowcalls::engine::rpc

#endif  // NOWCALLS_ENGINE_RPC_SERVICE_H_
