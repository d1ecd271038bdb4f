#include "server/rules/http_poll.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace nowcalls::server {
namespace {

// It is sent back, so it must be a header's value.
std::string UsableTag(const std::string& tag) {
  const auto plain = [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != 0x7f; };
  const bool usable =
      tag.size() <= HttpPoll::kTagBytesMax && std::all_of(tag.begin(), tag.end(), plain);
  return usable ? tag : std::string();
}

std::string ProblemOf(int64_t code) {
  std::string answers = "answers " + std::to_string(code);
  if (code == 401 || code == 403) return answers + ": see rules-header-file";
  if (code >= 300 && code < 400) return answers + ": name the address to which it redirects";
  return answers;
}

}  // namespace

HttpRequest HttpPoll::Next(bool again) {
  if (again) Forget();
  HttpRequest request{.url = url_, .answer_ms_max = kAnswerMsMax};
  if (!etag_.empty()) request.headers.push_back("If-None-Match: " + etag_);
  if (!last_modified_.empty()) request.headers.push_back("If-Modified-Since: " + last_modified_);
  conditional_ = !request.headers.empty();
  if (index_ != 0) {
    request.url += url_.find('?') == std::string::npos ? '?' : '&';
    request.url +=
        "index=" + std::to_string(index_) + "&wait=" + std::to_string(kConsulWaitMs / 1'000) + "s";
    // Consul adds up to a sixteenth, so that its clients do not come back together.
    request.answer_ms_max += kConsulWaitMs + kConsulWaitMs / 16;
  }
  return request;
}

Fetched HttpPoll::Take(Result<HttpReply> reply) {
  const bool unchanged = reply.ok() && reply->code == 304 && conditional_;
  if (!reply.ok() || (reply->code != 200 && !unchanged)) {
    Forget();
    return Fetched::Failed(reply.ok() ? ProblemOf(reply->code) : reply.status().message(),
                           poll_ms_);
  }
  NoteIndex(reply->consul_index);
  if (unchanged) return Fetched::Unchanged(pause_ms());
  etag_ = UsableTag(reply->etag);
  last_modified_ = UsableTag(reply->last_modified);
  return Fetched::Read(std::move(reply->body), pause_ms());
}

void HttpPoll::Forget() {
  etag_.clear();
  last_modified_.clear();
  index_ = 0;
}

// Consul asks its clients to begin anew when an index goes back.
void HttpPoll::NoteIndex(const std::string& header) {
  uint64_t index = 0;
  const auto [end, error] = std::from_chars(header.data(), header.data() + header.size(), index);
  const bool valid = error == std::errc() && end == header.data() + header.size();
  index_ = valid && index >= index_ ? index : 0;
}

}  // namespace nowcalls::server
