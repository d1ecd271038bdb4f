// Entrance: who asks by HTTP, and whether it may.
//
// Thread: any; it locks.
#ifndef NOWCALLS_WEB_ENTRANCE_H_
#define NOWCALLS_WEB_ENTRANCE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "access/access.h"
#include "access/gate.h"
#include "net/peer.h"
#include "web/http.h"
#include "web/log_line.h"

namespace nowcalls::web {

class Entrance {
 public:
  static constexpr int64_t kLogEveryMs = 60'000;  // Lines about an address, or a /64 of IPv6.
  static constexpr size_t kLoggedMax = 64;        // Such addresses within that time.

  struct Visit {
    access::Identity identity{};
    std::optional<Response> refusal{};
  };

  Entrance(access::Gate gate, LogLine log) : gate_(std::move(gate)), log_(std::move(log)) {}

  void SetGate(access::Gate gate);
  // 401: a secret is missing or wrong. 403: it may not, or a secret came over a connection that
  // others can read.
  Visit Enter(const Request& request, const access::Needs& needs);
  // The principal as of now; nullopt: it may not any more, or may less.
  std::optional<access::Principal> Again(const net::Peer& peer,
                                         const access::Identity& identity) const;
  uint64_t wrong_secrets() const { return wrong_secrets_.load(std::memory_order_relaxed); }

 private:
  access::Gate gate() const;
  Response Wrong(const Request& request);
  void LogWrong(const std::string& host);

  mutable std::mutex mutex_;
  access::Gate gate_;
  const LogLine log_;
  std::map<std::string, int64_t> logged_ms_;  // BoottimeMs of the last line, by address.
  std::atomic<uint64_t> wrong_secrets_ = 0;
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_ENTRANCE_H_
