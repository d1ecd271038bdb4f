// SentinelCaller: a caller that speaks Sentinel's frames, as wire/SENTINEL.md has them.
//
// Thread: one at a time. Requests and answers are made and read by wire/sentinel/client_frames.h.
#ifndef NOWCALLS_SIM_SENTINEL_CALLER_H_
#define NOWCALLS_SIM_SENTINEL_CALLER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "sim/caller.h"
#include "wire/sentinel/client_frames.h"

namespace nowcalls::sim {

class SentinelCaller : public Caller {
 public:
  using Caller::Caller;

  size_t unanswered() const override { return answers_.size(); }

 protected:
  // Told of the answer, or, with null, that none will come.
  using Answer = std::function<void(const wire::sentinel::Response*)>;

  // `encode` appends a frame with the xid that it is given; its answer repeats `type`.
  // REQUIRES: may_send().
  template <typename Encode>
  void Call(int8_t type, Encode&& encode, Answer answer) {
    const uint32_t xid = ++last_xid_;
    answers_.emplace(xid, Awaited{std::move(answer), type, network()->now_ms()});
    wire::OutputBuffer frame;
    encode(xid, &frame);
    Send(frame.view());
  }
  template <typename Encode>
  void Call(wire::sentinel::RequestType type, Encode&& encode, Answer answer) {
    Call(static_cast<int8_t>(type), std::forward<Encode>(encode), std::move(answer));
  }

  // All answers that will not come have been told.
  virtual void Left() = 0;

 private:
  struct Awaited {
    Answer answer;
    int8_t type = 0;
    int64_t sent_ms = 0;
  };

  void Connected() override { input_.clear(); }
  void Received(std::string_view bytes) override;
  void Disconnected() override;
  // False: nobody has asked for it.
  bool Take(const wire::sentinel::Response& response);

  uint32_t last_xid_ = 0;
  std::string input_;
  std::map<uint32_t, Awaited> answers_;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SENTINEL_CALLER_H_
