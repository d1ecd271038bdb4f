// ToyChannel: a net::Channel that does to bytes what TLS does, without any secret. It holds bytes
// back until both ends have greeted each other, changes and lengthens them, ends with a last word,
// and fails at a byte that its peer would not send.
//
// Thread: one at a time.
#ifndef NOWCALLS_SUPPORT_TOY_CHANNEL_H_
#define NOWCALLS_SUPPORT_TOY_CHANNEL_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "net/channel.h"

namespace nowcalls::testing {

class ToyChannel final : public net::Channel {
 public:
  // The end that connects greets first.
  enum class End { kConnects, kAccepts };

  explicit ToyChannel(End end) : end_(end) {}
  static std::unique_ptr<net::Channel> Make(End end) { return std::make_unique<ToyChannel>(end); }

  Received Receive(std::string_view from_socket) override {
    bytes_.clear();
    reply_.clear();
    bool failed = false;
    if (end_ == End::kConnects) Greet(&reply_);
    for (const char byte : from_socket) failed = failed || !Take(byte);
    return {.bytes = bytes_, .reply = reply_, .failed = failed};
  }

  std::string_view Send(std::string_view from_protocol) override {
    held_ += from_protocol;
    out_.clear();
    if (end_ == End::kConnects) Greet(&out_);
    if (heard_) Release(&out_);
    return out_;
  }

  std::string_view Close() override {
    out_ = greeted_ ? std::string(1, kGoodbye) : "";
    return out_;
  }

  std::string error() const override { return "a byte has no meaning"; }
  bool shakes_hands() const override { return !heard_; }
  bool encrypted() const override { return heard_; }
  std::string_view peer() const override { return "toy"; }

 private:
  static constexpr char kGreeting = 'G';
  static constexpr char kData = 'd';  // The byte behind it, changed.
  static constexpr char kGoodbye = 'B';
  static constexpr char kChange = 0x55;

  bool Take(char byte) {
    if (std::exchange(data_follows_, false)) {
      bytes_ += static_cast<char>(byte ^ kChange);
      return true;
    }
    if (byte == kGreeting && !heard_) {
      heard_ = true;
      Greet(&reply_);
      Release(&reply_);
      return true;
    }
    data_follows_ = byte == kData && heard_;
    return data_follows_ || (byte == kGoodbye && heard_);
  }

  void Greet(std::string* to) {
    if (!std::exchange(greeted_, true)) *to += kGreeting;
  }
  void Release(std::string* to) {
    for (const char byte : std::exchange(held_, {})) {
      *to += kData;
      *to += static_cast<char>(byte ^ kChange);
    }
  }

  const End end_;
  bool greeted_ = false;
  bool heard_ = false;  // The other end's greeting.
  bool data_follows_ = false;
  std::string held_;  // Of the protocol, until both have greeted.
  std::string bytes_;
  std::string reply_;
  std::string out_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_TOY_CHANNEL_H_
