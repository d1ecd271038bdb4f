// Exchange: the requests and answers of one connection.
//
// Thread: one at a time. Answers come in any order; msgid matches them to requests.
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

// `what`, such as "no answer to hello", and the question whether the peer is a nowcalls-server.
std::string DoubtOfPeer(std::string_view what);

class Exchange {
 public:
  // Appends by encode(msgid, OutputBuffer*); returns the msgid. kInvalidArgument: over
  // kMessageBytesMax, nothing appended.
  template <typename Encode>
  Result<uint32_t> Request(Encode&& encode) {
    const uint32_t msgid = NextMsgid();
    const size_t begin = output_.size();
    encode(msgid, &output_);
    NOWCALLS_RETURN_IF_ERROR(Admit(msgid, begin));
    return msgid;
  }

  // The owner drops sent bytes.
  wire::OutputBuffer* output() { return &output_; }

  void Receive(std::string_view bytes);

  // None until more bytes arrive; views live until the next Receive. Lost notices before it go to
  // TakeLost; unknown notifications are dropped. kCorruption: foreign bytes, or an answer to no
  // request; close the connection.
  Result<std::optional<wire::Response>> TakeResponse();

  std::vector<wire::LostNotice> TakeLost() { return std::exchange(lost_, {}); }

  // Its first byte was wrong: no nowcalls-server, so nothing was carried out.
  bool peer_is_foreign() const { return peer_is_foreign_; }
  // No byte has ever come.
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
