// Caller: a user of the server, on one simulated connection at a time.
//
// Thread: one at a time. The product's own client code (client/exchange.h) makes the requests and
// tells the answers apart; the simulated network moves the bytes.
#ifndef NOWCALLS_SIM_CALLER_H_
#define NOWCALLS_SIM_CALLER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "client/exchange.h"
#include "sim/network.h"
#include "wire/client_messages.h"

namespace nowcalls::sim {

class Caller : public LinkUser {
 public:
  Caller(Network* network, std::string host) : network_(network), host_(std::move(host)) {}
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  // REQUIRES: not connected().
  void Connect(bool steady);
  bool connected() const { return link_.has_value(); }
  bool may_send() const { return connected() && !finished_; }
  // Waits for what is still to be answered, or does not.
  void Hangup(bool politely);

  size_t unanswered() const { return answers_.size(); }
  uint64_t requests() const { return requests_; }
  LinkId link() const { return *link_; }
  const std::string& peer() const { return peer_; }

  // LinkUser.
  void OnBytes(LinkId link, std::string_view bytes) override;
  void OnDown(LinkId link) override;

 protected:
  // Told of the answer, or, with null, that none will come.
  using Answer = std::function<void(const wire::Response*)>;

  // REQUIRES: may_send().
  template <typename Encode>
  void Call(Encode&& encode, Answer answer) {
    const Result<uint32_t> msgid = exchange_->Request(std::forward<Encode>(encode));
    NOWCALLS_CHECK(msgid.ok());
    answers_.emplace(*msgid, Awaited{std::move(answer), network_->now_ms()});
    ++requests_;
    network_->Send(*link_, exchange_->output()->view());
    exchange_->output()->Clear();
  }

  Network* network() const { return network_; }
  virtual void Disconnected() {}
  // The server has sent what is no answer.
  virtual void Misunderstood(const std::string& what) = 0;

 private:
  struct Awaited {
    Answer answer;
    int64_t sent_ms = 0;
  };

  // Said of a message of which the network has held a part back for too long: the server has done
  // nothing of it, and closes.
  bool IsOfHalf(const wire::Response& response, const Awaited& awaited) const;
  void Drop();

  Network* const network_;
  const std::string host_;
  uint32_t port_ = 1000;
  std::string peer_;
  std::optional<LinkId> link_;
  bool finished_ = false;  // Sends no more.
  std::unique_ptr<client::Exchange> exchange_;
  std::map<uint32_t, Awaited> answers_;
  uint64_t requests_ = 0;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_CALLER_H_
