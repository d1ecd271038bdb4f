// Saboteur: breaks one promise of the server on purpose, at the borders of the engine and the
// store, so that a test can demand that the simulator notices.
//
// Thread: one at a time. The product itself has no part in it. With kNone it does nothing.
#ifndef NOWCALLS_SIM_SABOTEUR_H_
#define NOWCALLS_SIM_SABOTEUR_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/prng.h"
#include "ledger/commit_batch.h"
#include "sim/loss_saboteur.h"
#include "sim/network.h"
#include "store/ledger_source.h"
#include "wire/messages.h"
#include "wire/sentinel/client_frames.h"
#include "wire/splitter.h"

namespace nowcalls::sim {

enum class Sabotage : uint8_t {
  kNone,
  kReplyBeforeCommit,  // Batches are called durable when they are submitted.
  kLostRelease,        // Now and then a release is answered and forgotten.
  kDoubleGrant,        // Now and then who is refused is given the token of another.
  kFenceReused,      // A restart goes on behind the newest fence that it finds, not the sealed one.
  kHighLevel,        // Every rule with a level of its own lets one more in, and does not tell.
  kNoSweep,          // Scans find nothing.
  kLateSweep,        // They find what was due half a minute ago.
  kWrongFigures,     // A grant tells of one call more than there are.
  kFalseRefusal,     // Now and then an acquire is refused for the level, unseen.
  kUnnoticedReboot,  // The machine keeps its boot id, and the log denies that batches may lack.
  kLogNotReplayed,   // Recovery passes over what the log has behind the tables.
  kLostWake,         // The loop sleeps until something happens, whatever the turn says.
  kLostScan,         // The turn never hears of a scan's end.
  kClaimNotCompared,  // An append goes by the number of its slot alone.
  kNoFence,           // A writer believes in its claim for ever.
  kDeposedAnswers,    // A writer that was deposed tells its batches durable.
  kLastBatchMissed,   // A takeover reads all but the last batch, and is not settled.
  kForeignClock,      // A takeover takes the clock of another machine for its own.
  kTxnNotAwaited,     // A writer tells a batch durable when it sends it to etcd.
  kHoldIgnored,       // Grants are given the rule's hold, whatever was asked for.
  // Of notices of lost tokens (loss_saboteur.h).
  kLostReleased,
  kLostEarly,
  kLostWithheld,
  // Of answers in Sentinel's frames.
  kFreeCalls,     // Now and then a FLOW that is blocked is told that it passes,
  kFreeValues,    // or a PARAM_FLOW.
  kFreeRequests,  // A FLOW that is too many is told that it passes.
  kFalseBlock,    // Now and then calls that pass are told that they are blocked.
  kWrongOnline,   // A PING tells of one session more than there are.
  kFrameTwice,    // Now and then who is refused is given the token of another.
  kFrameDropped,  // Now and then a release is answered and forgotten.
  // A restart finds no windows of calls a second.
  kWindowsForgotten,
  // Of client sessions (session_saboteur.h).
  kSessionAsksOnce,        // An acquire that has no answer is not asked again,
  kSessionForgetsRelease,  // or a release,
  kSessionForgetsCancel,   // and an acquire that was given up is not cancelled.
  kSessionForgetsKeep,     // Tokens are not kept.
  kSessionDeaf,            // Notices of lost tokens are not heard.
  kSessionSilent,          // Now and then a caller is not told of its answer.
};

class Saboteur {
 public:
  Saboteur(Sabotage kind, uint64_t seed);

  bool replies_early() const {
    return kind_ == Sabotage::kReplyBeforeCommit || kind_ == Sabotage::kTxnNotAwaited;
  }
  bool sweeps() const { return kind_ != Sabotage::kNoSweep; }
  int64_t sweep_lag_ms() const { return kind_ == Sabotage::kLateSweep ? 30'000 : 0; }
  bool replays() const { return kind_ != Sabotage::kLogNotReplayed; }
  bool answers_deposed() const { return kind_ == Sabotage::kDeposedAnswers; }
  bool compares_claim() const { return kind_ != Sabotage::kClaimNotCompared; }
  bool fences_itself() const { return kind_ != Sabotage::kNoFence; }
  bool misses_last() const { return kind_ == Sabotage::kLastBatchMissed; }
  bool trusts_clocks() const { return kind_ == Sabotage::kForeignClock; }
  bool wakes() const { return kind_ != Sabotage::kLostWake; }
  bool tells_scans() const { return kind_ != Sabotage::kLostScan; }
  bool hides_reboots() const { return kind_ == Sabotage::kUnnoticedReboot; }

  // What the engine is given instead of `bytes`; answers of its own are appended to *replies.
  std::string In(LinkId link, std::string_view bytes, std::string* replies);
  // What the client is given instead of whole replies.
  std::string Out(LinkId link, std::string_view bytes);
  // What recovery is shown of `store`.
  Status Load(store::LedgerSource* store, ledger::EntityVisitor* visitor) const;

 private:
  // What is left of a stream that has not come to a whole message.
  struct Stream {
    std::string rest;
    wire::MessageSplitter splitter;
    wire::sentinel::FrameSplitter frames;
    bool begun = false;
    bool speaks_frames = false;
  };

  bool often_enough() { return prng_.ChancePerMillion(100'000); }
  std::string Messages(LinkId link, Stream* stream, std::string* replies);
  std::string Frames(Stream* stream, std::string* replies);
  std::string Request(LinkId link, std::string_view message, std::string* replies);
  std::string Reply(std::string_view message);
  std::string FrameReplies(std::string_view bytes);
  void TamperFrame(const wire::sentinel::Response& response, char* payload);

  const Sabotage kind_;
  Prng prng_;
  LossSaboteur losses_;
  std::map<LinkId, Stream> streams_;
  wire::AcquireReply granted_;     // The last grant that was seen,
  uint64_t granted_in_frame_ = 0;  // and the last token of one.
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SABOTEUR_H_
