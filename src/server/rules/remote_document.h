// RemoteDocument: a rule document that is asked for over the network.
//
// Thread: one at a time, but for Interrupt.
#ifndef NOWCALLS_SERVER_RULES_REMOTE_DOCUMENT_H_
#define NOWCALLS_SERVER_RULES_REMOTE_DOCUMENT_H_

#include <cstdint>
#include <string>
#include <utility>

namespace nowcalls::server {

struct Fetched {
  enum class Outcome {
    kRead,         // `text`, which may be that of before.
    kUnchanged,    // It is the text that was read last.
    kFailed,       // `problem` completes "the source https://a/b ...": "answers 404".
    kInterrupted,  // Nothing is known.
  };
  Outcome outcome = Outcome::kInterrupted;
  std::string text{};
  std::string problem{};
  int64_t pause_ms = 0;  // Until it is to be asked again.

  static Fetched Read(std::string text, int64_t pause_ms) {
    return {.outcome = Outcome::kRead, .text = std::move(text), .pause_ms = pause_ms};
  }
  static Fetched Unchanged(int64_t pause_ms) {
    return {.outcome = Outcome::kUnchanged, .pause_ms = pause_ms};
  }
  // A lasting fault has the same words each time.
  static Fetched Failed(std::string problem, int64_t pause_ms) {
    return {.outcome = Outcome::kFailed, .problem = std::move(problem), .pause_ms = pause_ms};
  }
};

class RemoteDocument {
 public:
  virtual ~RemoteDocument() = default;

  // Blocks for a bounded time: until there is an answer, or until a change that it waits for.
  // `again`: reads at once, whatever was read before. After a failure the next call does, too.
  virtual Fetched Fetch(bool again) = 0;

  // Thread: any. Ends the Fetch under way, or the next one, soon.
  virtual void Interrupt() = 0;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_RULES_REMOTE_DOCUMENT_H_
