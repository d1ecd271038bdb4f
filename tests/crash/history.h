// History: what the clients of a crash run saw, as append-only logs and as structs.
//
// A client writes one line before it sends a request and one after the answer came, so that after
// any kill the log tells what was asked and what was acknowledged. A request without an answer has
// an unknown outcome. Lines are words separated by one space; times are microseconds of
// CLOCK_BOOTTIME, N numbers the requests of one log:
//
//   up T CLIENT                                          the session is online, T: answer of hello
//   down T CLIENT                                        written before it closes its connection
//   ask N T CLIENT acquire FLOW COUNT
//   ask N T CLIENT release TOKEN
//   ask N T CLIENT keep TOKEN
//   answer N T granted TOKEN FENCE NOW_CALLS LEVEL HOLD_MS
//   answer N T released                                  RELEASE_OK
//   answer N T kept HOLD_MS
//   answer N T gone                                      ALREADY_RELEASE, for release and keep
//   answer N T refused                                   definitely not granted
//
// Thread: a writer belongs to one client thread; the rest is plain data.
#ifndef NOWCALLS_CRASH_HISTORY_H_
#define NOWCALLS_CRASH_HISTORY_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace nowcalls::crash {

enum class Action { kAcquire, kRelease, kKeep };
enum class Outcome { kUnknown, kGranted, kReleased, kKept, kGone, kRefused };

struct Operation {
  int64_t number = 0;
  std::string client;
  Action action = Action::kAcquire;
  int64_t flow_id = 0;    // acquire
  int64_t count = 0;      // acquire
  uint64_t token_id = 0;  // release and keep: asked for; acquire: granted
  int64_t asked_us = 0;
  Outcome outcome = Outcome::kUnknown;
  int64_t answered_us = 0;
  uint64_t fence = 0;
  int64_t now_calls = 0;
  int64_t level = 0;
  int64_t hold_ms = 0;
};

struct LinkEvent {
  std::string client;
  int64_t at_us = 0;
  bool up = false;
};

struct History {
  std::vector<Operation> operations;
  std::vector<LinkEvent> links;
};

// One log file, open for appending. Every line is handed to the operating system before the call
// returns. Throws std::runtime_error when the file cannot be written.
class HistoryWriter {
 public:
  explicit HistoryWriter(const std::string& path);

  void Link(const std::string& client, bool up);
  void AskAcquire(int64_t number, const std::string& client, int64_t flow_id, int64_t count);
  void AskRelease(int64_t number, const std::string& client, uint64_t token_id);
  void AskKeep(int64_t number, const std::string& client, uint64_t token_id);
  void AnswerGranted(const Operation& granted);  // Its number, token, fence, ... hold_ms.
  void Answer(int64_t number, Outcome outcome, int64_t hold_ms = 0);

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
