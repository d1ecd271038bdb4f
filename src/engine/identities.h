// Identities: whom the server takes each connection for.
//
// Thread: loop. Keeps Connection::identity. Wrong secrets are answered late and, in the end, with a
// close. After another list of principals each connection is looked at again, some a turn.
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
  // Ok: it has the identity of the secret. kUnavailable: the secret is wrong; AnswerWrongSecret of
  // its protocol follows late. kPermissionDenied: nothing has changed, and the message says why.
  Status Show(Connection* connection, std::string_view secret, Instant now);
  void Forget(Connection* connection);

  // Connections whose principal is gone or may less are closed in the turns that follow.
  void SetGate(access::Gate gate);

  // Answers and looks that are due.
  void OnTime(Instant now);
  Instant NextDeadline() const;

  // A call was refused for want of a role or a namespace. `why` continues the method's name.
  // `is_act`: one of an administrator's, which the log tells.
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
  // Connections whose wrong secret waits for its answer, by the moment of that.
  absl::btree_set<std::pair<int64_t, ConnectionId>> wrong_;
  bool looks_again_ = false;
  size_t next_look_ = 0;  // While looks_again_: those before it have been looked at.
  // Connections that these looks have closed, by principal; empty: let in without a list.
  absl::btree_map<std::string, uint64_t> closed_;
  uint64_t wrong_secrets_ = 0;
  uint64_t refused_calls_ = 0;
  // Lines of administrators' acts have a place in the log of their own, which refusals must not
  // fill.
  LineQuota wrong_lines_{/*of_origin=*/1, /*of_all=*/100};
  LineQuota refused_lines_{/*of_origin=*/10, /*of_all=*/1000};
};

// Fields of a log line: principal, by, peer.
LogFields FieldsOf(const Connection& connection);
// "NAME at HOST:PORT", or "HOST:PORT" of a connection whose principal has no other name.
std::string NameOf(const Connection& connection);

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_IDENTITIES_H_
