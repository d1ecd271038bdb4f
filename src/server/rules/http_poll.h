// HttpPoll: what is asked of a web server about a document, and what its answers mean.
//
// Thread: one at a time; pure.
//
// A server with X-Consul-Index is asked Consul's blocking queries: its answer waits for a change.
// Any other is asked every poll_ms, with its ETag or Last-Modified. After a failure nothing is
// conditional: the next answer is the whole document.
#ifndef NOWCALLS_SERVER_RULES_HTTP_POLL_H_
#define NOWCALLS_SERVER_RULES_HTTP_POLL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "nowcalls/status.h"
#include "server/rules/remote_document.h"

namespace nowcalls::server {

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers{};  // "Name: value"
  int64_t answer_ms_max = 0;           // From the beginning to the last byte.
};

struct HttpReply {
  int64_t code = 0;
  // Headers; empty: there is none.
  std::string etag{};
  std::string last_modified{};
  std::string consul_index{};
  std::string body{};
};

class HttpPoll {
 public:
  static constexpr int64_t kAnswerMsMax = 10'000;
  static constexpr int64_t kConsulWaitMs = 30'000;
  static constexpr int64_t kConsulPauseMs = 1'000;  // An index may change for every other key.
  static constexpr size_t kTagBytesMax = 1'024;

  HttpPoll(std::string url, int64_t poll_ms) : url_(std::move(url)), poll_ms_(poll_ms) {}

  // `again`: the whole document, at once.
  HttpRequest Next(bool again);
  // The answer to Next. A Status completes "the source https://a/b ...".
  Fetched Take(Result<HttpReply> reply);

 private:
  void Forget();
  void NoteIndex(const std::string& header);
  int64_t pause_ms() const { return index_ == 0 ? poll_ms_ : kConsulPauseMs; }

  const std::string url_;
  const int64_t poll_ms_;
  bool conditional_ = false;  // The request that was made last.
  std::string etag_;
  std::string last_modified_;
  uint64_t index_ = 0;  // Of Consul; 0: none.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_RULES_HTTP_POLL_H_
