#include <utility>

#include "net/tls.h"

namespace nowcalls::net {
namespace {

constexpr char kHandshakeRecord = 0x16;

class ChannelByFirstByte final : public Channel {
 public:
  ChannelByFirstByte(std::shared_ptr<const TlsServer> tls, bool plain)
      : tls_(std::move(tls)), plain_(plain) {}

  Received Receive(std::string_view from_socket) override {
    if (chosen_ == nullptr) {
      if (from_socket.empty() || !error_.empty()) return {.failed = !error_.empty()};
      if (!Choose(from_socket.front() == kHandshakeRecord)) return {.failed = true};
    }
    return chosen_->Receive(from_socket);
  }
  // No protocol speaks before it was spoken to.
  std::string_view Send(std::string_view from_protocol) override {
    return chosen_ != nullptr ? chosen_->Send(from_protocol) : std::string_view();
  }
  std::string_view Close() override {
    return chosen_ != nullptr ? chosen_->Close() : std::string_view();
  }
  void Trim() override {
    if (chosen_ != nullptr) chosen_->Trim();
  }
  std::string error() const override { return chosen_ != nullptr ? chosen_->error() : error_; }
  bool shakes_hands() const override { return chosen_ == nullptr || chosen_->shakes_hands(); }
  std::string_view peer() const override { return chosen_->peer(); }
  bool encrypted() const override { return chosen_->encrypted(); }

 private:
  bool Choose(bool speaks_tls) {
    if (speaks_tls && tls_ == nullptr) {
      error_ = "it speaks TLS, and this server has no certificate";
    } else if (!speaks_tls && !plain_) {
      error_ = "it does not speak TLS, which is required of its address";
    } else {
      chosen_ = speaks_tls ? tls_->MakeChannel() : PlainChannel::Make();
    }
    tls_.reset();
    return chosen_ != nullptr;
  }

  std::shared_ptr<const TlsServer> tls_;
  const bool plain_;
  std::string error_;
  std::unique_ptr<Channel> chosen_;  // nullptr until the first byte, and if that is refused.
};

}  // namespace

std::unique_ptr<Channel> MakeChannelByFirstByte(std::shared_ptr<const TlsServer> tls, bool plain) {
  return std::make_unique<ChannelByFirstByte>(std::move(tls), plain);
}

}  // namespace nowcalls::net
