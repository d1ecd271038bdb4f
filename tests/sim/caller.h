// Caller: a user of the server, on one simulated connection at a time, whatever protocol it speaks.
//
// Thread: one at a time. The simulated network moves the bytes. Protocols are in rpc_caller.h and
// sentinel_caller.h.
#ifndef NOWCALLS_SIM_CALLER_H_
#define NOWCALLS_SIM_CALLER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "sim/network.h"

namespace nowcalls::sim {

class Caller : public LinkUser {
 public:
  // `name`: in the trace.
  Caller(std::string name, Network* network, std::string host)
      : name_(std::move(name)), network_(network), host_(std::move(host)) {}
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  // REQUIRES: not connected().
  void Connect(bool steady);
  bool connected() const { return link_.has_value(); }
  bool may_send() const { return connected() && !finished_; }
  // Waits for what is still to be answered, or does not.
  void Hangup(bool politely);

  const std::string& name() const { return name_; }
  virtual size_t unanswered() const = 0;
  uint64_t requests() const { return requests_; }
  LinkId link() const { return *link_; }
  const std::string& peer() const { return peer_; }

  // LinkUser.
  void OnBytes(LinkId link, std::string_view bytes) override;
  void OnDown(LinkId link) override;

 protected:
  // REQUIRES: may_send().
  void Send(std::string_view request);
  // False: the connection is over, or another one.
  bool IsOn(LinkId link) const { return link_ == link; }
  // Whether an answer that refuses a request as malformed may be due to the network. The server
  // refuses so a message of which a part was held back for too long; it has done nothing of it, and
  // closes.
  bool MayBeOfHalf(int64_t sent_ms) const;
  Network* network() const { return network_; }

  // A new connection begins.
  virtual void Connected() = 0;
  virtual void Received(std::string_view bytes) = 0;
  // The connection is over: nothing more is answered.
  virtual void Disconnected() = 0;
  // The server has sent what is no answer.
  virtual void Misunderstood(const std::string& what) = 0;

 private:
  void Drop();

  const std::string name_;
  Network* const network_;
  const std::string host_;
  uint32_t port_ = 1000;
  std::string peer_;
  std::optional<LinkId> link_;
  bool finished_ = false;  // Sends no more.
  uint64_t requests_ = 0;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_CALLER_H_
