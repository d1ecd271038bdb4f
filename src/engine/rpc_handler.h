// RpcHandler: one MessagePack-RPC request in, one call of the core, one reply out.
//
// Thread: loop. It decodes parameters, asks the core, and encodes the answer into the buffer that
// the reply's dependence calls for (ReplyBuffers). It keeps no state between requests.
#ifndef NOWCALLS_ENGINE_RPC_HANDLER_H_
#define NOWCALLS_ENGINE_RPC_HANDLER_H_

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "core/core.h"
#include "core/rule_json.h"
#include "engine/connection.h"
#include "engine/driver.h"
#include "engine/rpc_rule_source.h"
#include "nowcalls/rule_source.h"
#include "wire/admin_messages.h"
#include "wire/messages.h"

namespace nowcalls::engine {

// Where a reply goes.
class ReplyBuffers {
 public:
  virtual ~ReplyBuffers() = default;
  // For answers that rest on nothing: errors of the request, and refusals, which stay true enough
  // if the records behind them are lost.
  virtual wire::OutputBuffer* Immediate(Connection* connection) = 0;
  // For answers that tell of a record, or of state that records on their way have made.
  virtual wire::OutputBuffer* AfterCommit(Connection* connection) = 0;
};

class RpcHandler {
 public:
  // `rules` takes what rules_load brings; `info` answers the info method; `driver` logs who loaded
  // rules.
  RpcHandler(core::Core* core, RuleSink* rules, ReplyBuffers* replies, Driver* driver,
             std::string version, std::function<nlohmann::ordered_json(Instant)> info);

  void HandleRequest(Connection* connection, const wire::Envelope& request, const core::Step& turn);
  // Executes release and keep; ignores other methods, since nobody would hear of the token an
  // acquire issues.
  void HandleNotification(Connection* connection, const wire::Envelope& notification,
                          const core::Step& turn);

  // The answer to an acquire, now or later.
  void ReplyAcquire(Connection* connection, uint32_t msgid, const core::AcquireAnswer& answer);
  // The answer to a backup, if the connection still waits for it.
  void ReplyBackup(Connection* connection, const Result<wire::BackupReply>& made);

 private:
  // What a handler needs of the request it answers.
  struct Call {
    Connection* connection;
    const wire::Envelope& request;
    const core::Step& turn;
  };

  void Hello(const Call& call);
  void Ping(const Call& call);
  bool HasSession(const Call& call);
  void Acquire(const Call& call);
  void Release(const Call& call);
  void Keep(const Call& call);
  void Reclaim(const Call& call);
  void Cancel(const Call& call);
  void ReclaimClient(const Call& call);
  void ReclaimFlow(const Call& call);
  void Purge(const Call& call);
  void Drain(const Call& call);
  void RulesList(const Call& call);
  void RulesLoad(const Call& call);
  void LogUnchanged(const std::string& peer, const std::string& name_space,
                    const core::ParsedRules& rules);
  void Flow(const Call& call);
  void Flows(const Call& call);
  void Tokens(const Call& call);
  void Sessions(const Call& call);
  void History(const Call& call);
  void Info(const Call& call);
  void Namespaces(const Call& call);
  void Backup(const Call& call);

  static wire::RequestError ErrorOf(const Status& status);
  void ReplyError(const Call& call, const wire::RequestError& error);
  // For an error that tells of what is there: what has made it so may still be on its way.
  void ReplyErrorAfterCommit(const Call& call, const wire::RequestError& error);
  void ReplyStatus(const Call& call, TokenStatus status);
  void ReplyReclaimed(const Call& call, const Result<core::ReclaimAnswer>& answer);

  core::Core* const core_;
  RpcRuleSource rules_;
  ReplyBuffers* const replies_;
  Driver* const driver_;
  const std::string version_;
  const std::function<nlohmann::ordered_json(Instant)> info_;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_RPC_HANDLER_H_
