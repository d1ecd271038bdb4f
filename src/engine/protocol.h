// Protocol: the seam between the engine and a wire format.
//
// Thread: loop. One a connection, from its first byte on (protocols.h). The engine decides when a
// message is taken and when replies leave.
//
//   bytes -> Inputs -> Protocol::Take -> core::Core
//                            |  reply -> Outputs::Immediate or Outputs::AfterCommit
//   core  -> LateAnswers -> Protocol::AnswerAcquire -> Outputs
#ifndef NOWCALLS_ENGINE_PROTOCOL_H_
#define NOWCALLS_ENGINE_PROTOCOL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/core.h"
#include "nowcalls/status.h"
#include "wire/admin_messages.h"

namespace nowcalls::engine {

struct Connection;

// Of an open connection; queues in lines.h.
//
//   kNothing -> any other -> kForTurn -> kNothing, or any other if it still cannot go on
//               kForCommit -> kForWork
//               kForSecret -> kForTurn
enum class InputWaits : uint8_t {
  kNothing,     // Messages are taken as they come.
  kForTurn,     // A place in a turn.
  kForWork,     // A place in a turn for a listing or another request that is work.
  kForBatch,    // Room in the open batch: until BeginCommit.
  kForReplies,  // Replies of this connection, which wait for a commit: until OnCommitDone.
  kForCommit,   // Replies of all connections, beside which no long one has room: the same.
  kForPeer,     // The peer, which does not read its replies: until OnSent.
  kForSecret,   // The answer to a wrong secret (identities.h).
};

// In units of about half a microsecond. `per_kib`: of the message, its reply and its records.
struct Cost {
  int base = 1;
  int per_kib = 16;
  bool work = false;   // Taken from the work of the turn (turn_budget.h).
  bool shows = false;  // Shows what is there: the reply may be long, and waits for a commit.
};

struct Visit {
  core::Step step;
  bool first = true;     // The first message of the visit: what was seen ahead is out of date.
  bool may_work = true;  // Whether a message with Cost::work, Cost::shows may be done now.
  bool may_show = true;
};

inline constexpr Cost kLeastCost{};

enum class ProtocolKind : uint8_t { kMessagePackRpc, kSentinel };
inline constexpr int kProtocolKindCount = 2;

struct Taken {
  enum class Outcome : uint8_t {
    kTaken,       // `bytes` are done with; `cost` tells the price.
    kIncomplete,  // The message is not all there. Take is called again with more behind it.
    kWaits,       // Nothing was done. The same message comes again when what it waits for has come.
    kForeign,     // The first byte begins no message of this protocol: the connection must end.
    kRefused,     // The connection must end. Take has answered, if there was anybody to answer.
  };
  Outcome outcome = Outcome::kTaken;
  InputWaits waits = InputWaits::kNothing;  // kWaits only.
  size_t bytes = 0;                         // kTaken only; at least 1.
  const Cost* cost = &kLeastCost;           // Lives as long as the program.
  size_t values = 0;
};

class Protocol {
 public:
  virtual ~Protocol() = default;

  virtual ProtocolKind kind() const = 0;

  // Takes one message, or the rest of an oversized one, off the front of `input`, which begins
  // where the last kTaken ended. kIncomplete only while the message may still fit kMessageBytesMax.
  // kRefused: *why continues "connection HOST:PORT ". REQUIRES: input is not empty.
  virtual Taken Take(Connection* connection, std::string_view input, const Visit& visit,
                     std::string* why) = 0;

  // `tag`: of its core::WaitTicket.
  virtual void AnswerAcquire(Connection* connection, uint32_t tag,
                             const core::AcquireAnswer& answer) = 0;

  virtual void AnswerAcquireAll(Connection* /*connection*/, uint32_t /*tag*/,
                                const core::AcquireAllAnswer& /*answer*/) {}

  // A record took a token of the session. After LateAnswers::Listen only.
  virtual void TellLoss(Connection* /*connection*/, const core::Loss& /*loss*/) {}

  // Driver::BeginBackup has ended; the connection may wait for none.
  virtual void AnswerBackup(Connection* /*connection*/, const Result<wire::BackupReply>& /*made*/) {
  }

  // Answers the identify that Identities::Show took for wrong.
  virtual void AnswerWrongSecret(Connection* /*connection*/) {}

  // Tells the peer `why` its connection ends, if the message at the front can be answered.
  virtual void AnswerRefused(Connection* connection, std::string_view input,
                             std::string_view why) = 0;
};

inline InputWaits WaitsFor(const Cost& cost, const Visit& visit) {
  if (cost.work && !visit.may_work) return InputWaits::kForWork;
  if (cost.shows && !visit.may_show) return InputWaits::kForCommit;
  return InputWaits::kNothing;
}

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_PROTOCOL_H_
