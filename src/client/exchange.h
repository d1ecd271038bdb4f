// Exchange: the requests and answers of one connection, without the connection.
//
// Thread: one at a time. A front end makes requests, moves the bytes of output() to the server and
// the server's bytes to Receive, and takes the answers, which come in any order and are told apart
// by msgid. Nothing here does I/O or looks at a clock.
#ifndef NOWCALLS_CLIENT_EXCHANGE_H_
#define NOWCALLS_CLIENT_EXCHANGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "nowcalls/status.h"
#include "wire/client_messages.h"
#include "wire/output_buffer.h"
#include "wire/splitter.h"

namespace nowcalls::client {

// For who has met another service.
inline constexpr std::string_view kUsualPort =
    "the token port of a nowcalls-server is usually 18730";

class Exchange {
 public:
  // Appends to output() what encode(msgid, OutputBuffer*) writes and awaits its answer; returns the
  // msgid. kInvalidArgument: too many bytes for one message; nothing is appended then.
  template <typename Encode>
  Result<uint32_t> Request(Encode&& encode) {
    const uint32_t msgid = NextMsgid();
    const size_t begin = output_.size();
    encode(msgid, &output_);
    NOWCALLS_RETURN_IF_ERROR(Admit(msgid, begin));
    return msgid;
  }

  // Bytes for the server. The owner drops what it has sent.
  wire::OutputBuffer* output() { return &output_; }

  // Takes bytes from the server.
  void Receive(std::string_view bytes);

  // The next answer, or none until more bytes arrive; its views are valid until the next Receive.
  // Notifications before it are in TakeLost from then on; those of unknown methods are dropped.
  // kCorruption: the peer does not speak the protocol, or answered what nobody asked; the
  // connection must be closed.
  Result<std::optional<wire::Response>> TakeResponse();

  std::vector<wire::LostNotice> TakeLost() { return std::exchange(lost_, {}); }

  // Whether it failed at the first byte of the first answer. Who sends that is no server of
  // nowcalls, and has carried nothing out.
  bool peer_is_foreign() const { return peer_is_foreign_; }
  // Whether nothing has ever come from it.
  bool peer_is_silent() const { return !has_spoken_ && input_.empty(); }

  size_t awaited() const { return awaited_.size(); }

 private:
  Result<std::string_view> TakeMessage();
  uint32_t NextMsgid();
  Status Admit(uint32_t msgid, size_t begin);

  uint32_t last_msgid_ = 0;
  std::unordered_set<uint32_t> awaited_;
  wire::OutputBuffer output_;
  wire::MessageSplitter splitter_{kReplyBytesMax};
  std::vector<wire::LostNotice> lost_;
  std::string input_;
  size_t taken_bytes_ = 0;   // Of input_: answers that were handed out.
  bool has_spoken_ = false;  // The peer has sent a message.
  bool peer_is_foreign_ = false;
};

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_EXCHANGE_H_
