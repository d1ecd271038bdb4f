// Request and Response: HTTP as handlers see it.
//
// Thread: values, used by one thread at a time.
#ifndef NOWCALLS_WEB_HTTP_H_
#define NOWCALLS_WEB_HTTP_H_

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "net/peer.h"

namespace nowcalls::web {

// A GET or HEAD, or a POST of Sentinel's dashboard.
struct Request {
  std::string path{};                          // "/api/flows"
  std::map<std::string, std::string> query{};  // Decoded; of a name that comes twice the last.
  std::string accept{};                        // The header; empty without one.
  std::string if_none_match{};                 // Likewise.
  std::string authorization{};                 // Likewise; nothing may show it.
  bool is_fetch = false;                       // By a page's script, says the browser.
  net::Peer peer{};

  std::string Query(const std::string& name, std::string_view otherwise = "") const {
    const auto found = query.find(name);
    return found == query.end() ? std::string(otherwise) : found->second;
  }
};

inline bool IsOneOf(std::string_view path, const std::vector<std::string>& paths) {
  return std::find(paths.begin(), paths.end(), path) != paths.end();
}

inline constexpr std::string_view kPlainText = "text/plain; charset=utf-8";
inline constexpr std::string_view kJson = "application/json";

struct Response {
  int status = 200;
  std::string type{kPlainText};
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
  // Gives more bytes after the body, on the server's thread. Empty: no bytes until
  // HttpServer::WakeStreams; with `stream_ends`, the end. nullopt: the end.
  std::function<std::optional<std::string>()> stream{};
  bool stream_ends = false;
  size_t held_bytes = 0;  // What the stream keeps in memory until its reader has taken it.
  int64_t delay_ms = 0;   // The answer leaves about so long after the request.
};

// `etag` in quotes. Weak tags match.
inline bool HasEtag(const Request& request, std::string_view etag) {
  return request.if_none_match.find(etag) != std::string::npos;
}

// Nothing unless all of `text` is a T.
template <typename T>
std::optional<T> NumberOf(std::string_view text) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  return number;
}

inline Response ErrorResponse(int status, std::string text) {
  return {.status = status, .type = std::string(kPlainText), .body = std::move(text) + "\n"};
}

// ASCII letters only.
std::string SmallLetters(std::string_view text);

// Of "HOST", "HOST:PORT" or "[ADDRESS]:PORT", in small letters; empty: none.
std::string HostOf(std::string_view header);

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_HTTP_H_
