// RpcCaller: a caller that speaks MessagePack-RPC.
//
// Thread: one at a time. The product's own client code (client/exchange.h) makes the requests and
// tells the answers apart.
#ifndef NOWCALLS_SIM_RPC_CALLER_H_
#define NOWCALLS_SIM_RPC_CALLER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "client/exchange.h"
#include "sim/caller.h"
#include "wire/client_messages.h"

namespace nowcalls::sim {

class RpcCaller : public Caller {
 public:
  using Caller::Caller;

  size_t unanswered() const override { return answers_.size(); }

 protected:
  // Told of the answer, or, with null, that none will come.
  using Answer = std::function<void(const wire::Response*)>;

  // REQUIRES: may_send().
  template <typename Encode>
  void Call(Encode&& encode, Answer answer) {
    const Result<uint32_t> msgid = exchange_->Request(std::forward<Encode>(encode));
    NOWCALLS_CHECK(msgid.ok());
    answers_.emplace(*msgid, Awaited{std::move(answer), network()->now_ms()});
    Send(exchange_->output()->view());
    exchange_->output()->Clear();
  }

  // All answers that will not come have been told.
  virtual void Left() {}
  // The server tells of a token that was taken back.
  virtual void Lost(const wire::LostNotice& notice);

 private:
  struct Awaited {
    Answer answer;
    int64_t sent_ms = 0;
  };

  void Connected() override { exchange_ = std::make_unique<client::Exchange>(); }
  void Received(std::string_view bytes) override;
  void TellLost();
  void Disconnected() override;

  std::unique_ptr<client::Exchange> exchange_;
  std::map<uint32_t, Awaited> answers_;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_RPC_CALLER_H_
