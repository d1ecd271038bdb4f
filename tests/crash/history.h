// History: what the clients of a crash run saw, as append-only logs and as structs.
//
// A client writes one line before it sends a request and one after the answer came, so that after
// any kill the log tells what was asked and what was acknowledged. A request without an answer has
// an unknown outcome. Lines are words separated by one space; times are microseconds of
// CLOCK_BOOTTIME, N numbers the requests of one log:
//
//   up T CLIENT                                          the session is online, T: answer of hello
//   down T CLIENT                                        written before it closes its connection
//   lost T CLIENT TOKEN REASON                           the server has told so, unasked
//   ask N T CLIENT acquire FLOW COUNT REQUEST WAIT_MS WANTED_MS [FLOW COUNT]...
//                                                        REQUEST 0: without a request id;
//                                                        WANTED_MS 0: the rule's hold;
//                                                        more flows: a group (acquire_all)
//   ask N T CLIENT release TOKEN
//   ask N T CLIENT keep TOKEN
//   ask N T CLIENT cancel REQUEST
//   ask N T CLIENT reclaim TOKEN                         this and the following: an operator
//   ask N T CLIENT reclaim_flow FLOW
//   ask N T CLIENT purge FLOW
//   ask N T CLIENT reclaim_client HOLDER
//   ask N T CLIENT drain FLOW
//   ask N T CLIENT undrain FLOW
//   answer N T granted TOKEN FENCE NOW_CALLS LEVEL HOLD_MS [TOKEN FENCE HOLD_MS]...
//                                                        of a group NOW_CALLS and LEVEL are 0
//   answer N T released                                  RELEASE_OK
//   answer N T kept HOLD_MS
//   answer N T gone                                      ALREADY_RELEASE
//   answer N T refused                                   definitely not done
//   answer N T reclaimed COUNT MORE                      of many tokens; MORE: 1 if some are left
//   answer N T done                                      a drain
//
// A group is as many operations as it has items, side by side and with one number.
//
// Thread: a writer belongs to one client thread; the rest is plain data.
#ifndef NOWCALLS_CRASH_HISTORY_H_
#define NOWCALLS_CRASH_HISTORY_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nowcalls::crash {

enum class Action {
  kAcquire,
  kRelease,
  kKeep,
  kCancel,
  kReclaim,
  kReclaimFlow,
  kPurge,
  kReclaimClient,
  kDrain,
  kUndrain,
};
enum class Outcome {
  kUnknown,
  kGranted,
  kReleased,
  kKept,
  kGone,
  kRefused,
  kReclaimed,
  kDone,
};

// A session that can be come back to: its client id, and #INSTANCE unless that is 0.
inline std::string OwnerOf(const std::string& client_id, uint64_t instance) {
  return instance == 0 ? client_id : client_id + "#" + std::to_string(instance);
}

struct Operation {
  int64_t number = 0;
  std::string client;
  Action action = Action::kAcquire;
  size_t items = 1;         // acquire: of the group that this operation is one item of
  int64_t flow_id = 0;      // acquire, and an operator's requests about a flow
  int64_t count = 0;        // acquire
  uint64_t request_id = 0;  // acquire (0: none) and cancel
  int64_t wait_ms = 0;      // acquire
  int64_t wanted_ms = 0;    // acquire: the hold that it asks for; 0: the rule's
  std::string holder;       // reclaim_client
  uint64_t token_id = 0;    // acquire: granted; release, keep and reclaim: asked for
  int64_t asked_us = 0;
  Outcome outcome = Outcome::kUnknown;
  int64_t answered_us = 0;
  std::vector<uint64_t> grant;  // Granted: the tokens of all items, ascending.
  uint64_t fence = 0;
  int64_t now_calls = 0;
  int64_t level = 0;
  int64_t hold_ms = 0;
  int64_t reclaimed = 0;
  bool more = false;
};

// The items of one request: one operation, or those of a group.
using Items = std::span<const Operation>;

// Tells the items of a granted group, one behind the other, of all their tokens.
void SetGrant(std::span<Operation> items);

struct LinkEvent {
  std::string client;
  int64_t at_us = 0;
  bool up = false;
};

// A notice that a token was taken back.
struct LostEvent {
  std::string client;
  uint64_t token_id = 0;
  std::string reason;
  int64_t at_us = 0;
};

struct History {
  // The acquires, one after the other.
  std::vector<Items> Acquires() const;

  std::vector<Operation> operations;
  std::vector<LinkEvent> links;
  std::vector<LostEvent> lost;
};

// One log file, open for appending. Every line is handed to the operating system before the call
// returns. Throws std::runtime_error when the file cannot be written.
class HistoryWriter {
 public:
  explicit HistoryWriter(const std::string& path);

  void Link(const std::string& client, bool up);
  void Lost(const std::string& client, uint64_t token_id, const std::string& reason);
  void Ask(Items items);     // Their number, client, action and what that takes.
  void Answer(Items items);  // Their number, outcome and what that tells.
  void Ask(const Operation& asked) { Ask(Items(&asked, 1)); }
  void Answer(const Operation& answered) { Answer(Items(&answered, 1)); }

 private:
  void Line(const std::string& line);

  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Closer> file_;
};

// Adds what one log holds. Throws std::runtime_error, naming the line, for a log of another form.
void ReadHistory(const std::string& path, History* history);
void ParseHistory(const std::string& text, History* history);

// One line for a person: the operation with its outcome.
std::string Describe(const Operation& operation);

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_HISTORY_H_
