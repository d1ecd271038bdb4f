// TlsPort: how connections of the token port are encrypted, and the certificate's life.
//
// Thread: loop. Files that changed, or ReadNow, give later connections another certificate. Files
// that cannot be used change nothing, and the log says why. From kWarnDays before the certificate's
// end a line a day warns.
#ifndef NOWCALLS_SERVER_SECURITY_TLS_PORT_H_
#define NOWCALLS_SERVER_SECURITY_TLS_PORT_H_

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "engine/figures.h"
#include "net/channel.h"
#include "net/peer.h"
#include "net/tls.h"
#include "nowcalls/status.h"
#include "server/config/config.h"
#include "server/files/file_watch.h"

namespace nowcalls::server {

using TlsContext = std::shared_ptr<const net::TlsServer>;

// nullptr: TLS is off. kInvalidArgument: a file that cannot be read, or used.
Result<TlsContext> LoadTls(const ServerConfig& config);

bool MayBePlain(const ServerConfig& config, const net::Peer& peer);

// "TLS with the certificate of db.example, until 2027-01-01 00:00:00 UTC".
std::string DescribeTls(const net::TlsServer& tls);

// For the start's log; empty: nothing.
std::string WarningOfKey(const ServerConfig& config);

class TlsPort {
 public:
  static constexpr int64_t kWarnDays = 14;

  // Pointers outlive it.
  TlsPort(const ServerConfig* config, TlsContext tls, engine::TlsCounters* counters,
          const FileWatchOptions& options = {});

  // REQUIRES: a peer over TCP.
  std::unique_ptr<net::Channel> MakeChannel(const net::Peer& peer) const;
  bool on() const { return tls_ != nullptr; }
  bool MayBePlain(const net::Peer& peer) const { return server::MayBePlain(*config_, peer); }

  // `taken` runs with each certificate that later replaces the first.
  void WhenReplaced(std::function<void(const net::TlsServer& tls)> taken) {
    when_replaced_ = std::move(taken);
  }

  void CountHandshake(bool done) { ++(done ? counters_->handshakes : counters_->failed); }

  void Watch(uv_loop_t* loop);
  void ReadNow();
  void StopWatching();
  bool idle() const { return files_.idle(); }

 private:
  void Take(const Result<TlsContext>& read, bool asked);
  void WarnOfEnd();

  const ServerConfig* const config_;
  engine::TlsCounters* const counters_;
  TlsContext tls_;
  FileWatch files_;
  std::function<void(const net::TlsServer& tls)> when_replaced_;
  bool read_before_ = false;
  std::string trouble_;  // Of the last read, as logged.
  int64_t warned_s_ = 0;
  uv_timer_t timer_{};
  bool watching_ = false;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_SECURITY_TLS_PORT_H_
