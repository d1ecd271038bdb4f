// Identities: whom the server takes each connection for.
//
// Thread: loop. Wrong secrets are answered late and, in the end, with a close.
#ifndef NOWCALLS_ENGINE_IDENTITIES_H_
#define NOWCALLS_ENGINE_IDENTITIES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "access/gate.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/core.h"
#include "engine/connections.h"
#include "engine/driver.h"
#include "engine/line_quota.h"
#include "engine/strangers.h"
#include "nowcalls/status.h"

namespace nowcalls::engine {

class Closing;
class Inputs;

class Identities {
 public:
  Identities(const Limits& limits, const core::Core* core, Driver* driver, Connections* connections,
             Inputs* inputs, Closing* closing)
      : core_(core),
        driver_(driver),
        connections_(connections),
        inputs_(inputs),
        closing_(closing),
        strangers_(limits, connections, closing) {}

  // By what its peer shows without a word.
  void Greet(Connection* connection, Instant now);
  // Ok: it has the identity of the secret. kUnavailable: wrong; its protocol's AnswerWrongSecret
  // follows late. kPermissionDenied: nothing has changed; the message says why.
  Status Show(Connection* connection, std::string_view secret, Instant now);
  void Forget(Connection* connection);

  // Engine::SetAccess.
  void SetGate(access::Gate gate);

  void OnTime(Instant now);
  Instant NextDeadline() const;

  // For want of a role or a namespace. `why` continues the method's name. `is_act`: an
  // administrator's, which is logged.
  void NoteRefused(const Connection& connection, std::string_view method, const std::string& why,
                   bool is_act, Instant now);

  Strangers* strangers() { return &strangers_; }
  const Strangers& strangers() const { return strangers_; }
  uint64_t wrong_secrets() const { return wrong_secrets_; }
  uint64_t refused_calls() const { return refused_calls_; }

 private:
  void Set(Connection* connection, access::Identity identity, Instant now);
  void NoteWrong(const Connection& connection, Instant now);
  void AnswerWrong(Instant now);
  void LookAgain(Instant now);
  void LookAgainAt(Connection* connection, Instant now);
  void NoteClosed();

  const core::Core* const core_;
  Driver* const driver_;
  Connections* const connections_;
  Inputs* const inputs_;
  Closing* const closing_;
  Strangers strangers_;
  access::Gate gate_;
  // Wrong secrets, by the moment of their answer.
  absl::btree_set<std::pair<int64_t, ConnectionId>> wrong_;
  bool looks_again_ = false;
  size_t next_look_ = 0;  // While looks_again_: those before it have been looked at.
  // Closed by these looks, by principal; empty: let in without a list.
  absl::btree_map<std::string, uint64_t> closed_;
  uint64_t wrong_secrets_ = 0;
  uint64_t refused_calls_ = 0;
  // Refusals must not fill the log's place for administrators' acts.
  LineQuota wrong_lines_{/*of_origin=*/1, /*of_all=*/100};
  LineQuota refused_lines_{/*of_origin=*/10, /*of_all=*/1000};
};

// Fields of a log line: principal, by, peer.
LogFields FieldsOf(const Connection& connection);
// "NAME at HOST:PORT", or "HOST:PORT" of a connection whose principal has no other name.
std::string NameOf(const Connection& connection);

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_IDENTITIES_H_
