#include "client/exchange.h"

namespace nowcalls::client {
namespace {

constexpr char kUsualPort[] = "the token port of a nowcalls-server is usually 18730";

// Names another service by the first bytes that it sends.
std::string WhatItSpeaks(std::string_view input, std::string otherwise) {
  using Begin = std::pair<std::string_view, std::string_view>;
  constexpr Begin kBegins[] = {{"HTTP/", "HTTP"}, {"SSH-", "SSH"}, {"-ERR", "Redis's protocol"}};
  if (input.starts_with("\x15\x03")) {
    return "it speaks TLS; so must the client, if that is a nowcalls-server; " +
           std::string(kUsualPort);
  }
  for (const auto& [begin, name] : kBegins) {
    if (!input.starts_with(begin)) continue;
    return "it speaks " + std::string(name) + "; " + kUsualPort;
  }
  return otherwise;
}

}  // namespace

std::string DoubtOfPeer(std::string_view what) {
  return std::string(what) + "; is that a nowcalls-server? " + kUsualPort;
}

uint32_t Exchange::NextMsgid() {
  // Wraps after 2^32 requests, and skips ids that still await an answer.
  do {
    ++last_msgid_;
  } while (awaited_.contains(last_msgid_));
  return last_msgid_;
}

Status Exchange::Admit(uint32_t msgid, size_t begin) {
  const size_t request_bytes = output_.size() - begin;
  if (request_bytes > kMessageBytesMax) {
    output_.Truncate(begin);
    return Status::InvalidArgument("the request of " + std::to_string(request_bytes) +
                                   " bytes exceeds the " + std::to_string(kMessageBytesMax) +
                                   " of a message");
  }
  awaited_.insert(msgid);
  return Status::Ok();
}

// Answers are views of input_, so their bytes are erased only here.
void Exchange::Receive(std::string_view bytes) {
  input_.erase(0, taken_bytes_);
  taken_bytes_ = 0;
  input_.append(bytes);
}

Result<std::optional<wire::Response>> Exchange::TakeResponse() {
  for (;;) {
    Result<std::string_view> message = TakeMessage();
    if (!message.ok()) return message.status();
    if (message->empty()) return std::optional<wire::Response>();
    if (wire::IsNotification(*message)) {
      Result<std::optional<wire::LostNotice>> notice = wire::DecodeNotification(*message);
      if (!notice.ok()) return notice.status();
      if (notice->has_value()) lost_.push_back(**std::move(notice));
      continue;
    }
    Result<wire::Response> response = wire::DecodeResponse(*message);
    if (!response.ok()) return response.status();
    // An answer to no request: the stream is out of step.
    if (awaited_.erase(response->msgid) == 0) {
      return Status::Corruption("answer to msgid " + std::to_string(response->msgid) +
                                ", which awaits none");
    }
    return std::optional<wire::Response>(*std::move(response));
  }
}

// Empty until more bytes arrive.
Result<std::string_view> Exchange::TakeMessage() {
  using Outcome = wire::MessageSplitter::Outcome;
  std::string_view input = input_;
  input.remove_prefix(taken_bytes_);
  size_t message_bytes = 0;
  switch (splitter_.Next(input, &message_bytes)) {
    case Outcome::kIncomplete: return std::string_view();
    case Outcome::kInvalid:
      // Foreign only at the first byte of the first message. Later nonsense may come from a server
      // that has carried a request out.
      peer_is_foreign_ = !has_spoken_ && !splitter_.in_message();
      return Status::Corruption(peer_is_foreign_ ? WhatItSpeaks(input, splitter_.error())
                                                 : splitter_.error());
    case Outcome::kMessage: break;
  }
  taken_bytes_ += message_bytes;
  has_spoken_ = true;
  return input.substr(0, message_bytes);
}

}  // namespace nowcalls::client
