#include "server/security/tls_port.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <utility>
#include <vector>

#include "access/network.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/counted.h"
#include "server/log/logging.h"

namespace nowcalls::server {
namespace {

constexpr int64_t kDayS = 24 * 3600;
constexpr uint64_t kLookMs = 3'600'000;

int64_t UnixSeconds() { return WallMs() / 1000; }

std::string TimeText(int64_t unix_s) {
  const std::time_t time = unix_s;
  std::tm parts{};
  char text[64] = "";
  if (gmtime_r(&time, &parts) != nullptr) {
    std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts);
  }
  return text;
}

// Without the operator's way to name it: one file may be all of them.
std::vector<std::string> FilesOf(const net::TlsServerFiles& tls) {
  std::vector<std::string> files;
  for (const std::string& file : {tls.certificate, tls.key, tls.client_ca}) {
    if (!file.empty()) files.push_back(file);
  }
  return files;
}

}  // namespace

Result<TlsContext> LoadTls(const ServerConfig& config) {
  if (config.tls.certificate.empty()) return TlsContext();
  Result<TlsContext> loaded = net::TlsServer::Load(config.tls);
  if (!loaded.ok()) return Status::InvalidArgument("TLS: " + loaded.status().message());
  return loaded;
}

std::string DescribeTls(const net::TlsServer& tls) {
  return "TLS with the certificate of " + tls.names() + ", until " + TimeText(tls.ends_at_s());
}

std::string WarningOfKey(const ServerConfig& config) {
  const std::string& file = config.tls.key;
  struct stat found {};
  // A group may be made for it, as Kubernetes and Debian do.
  if (file.empty() || stat(file.c_str(), &found) != 0 || (found.st_mode & S_IROTH) == 0) return "";
  return "everybody on this machine may read " + file +
         ", which has the key of TLS, and could pass for this server: run `chmod o-r " + file + "`";
}

TlsPort::TlsPort(const ServerConfig* config, TlsContext tls, engine::TlsCounters* counters,
                 const FileWatchOptions& options)
    : config_(config),
      counters_(counters),
      tls_(std::move(tls)),
      files_(
          FilesOf(config->tls),
          [this, files = config->tls]() -> FileWatch::Take {
            return [this, read = net::TlsServer::Load(files)](bool asked) { Take(read, asked); };
          },
          [](const std::string& directory, const std::string& why) {
            LogAt(Severity::kWarn,
                  "cannot watch " + directory + " (" + why +
                      "); the files of TLS there are looked at every few seconds instead",
                  {{"reason", why}});
          },
          options) {
  if (on()) counters_->certificate_ends_at_s = tls_->ends_at_s();
}

bool MayBePlain(const ServerConfig& config, const net::Peer& peer) {
  const PlainChoice& plain = config.plain;
  if (plain.values.empty()) return config.tls.certificate.empty() || peer.loopback;
  if (plain.loopback && peer.loopback) return true;
  const auto address = access::AddressOf(peer.host);
  return address.has_value() &&
         std::any_of(plain.networks.begin(), plain.networks.end(),
                     [&](const access::Network& network) { return Holds(network, *address); });
}

std::unique_ptr<net::Channel> TlsPort::MakeChannel(const net::Peer& peer) const {
  return net::MakeChannelByFirstByte(tls_, MayBePlain(peer));
}

void TlsPort::Watch(uv_loop_t* loop) {
  if (!on()) return;
  watching_ = true;
  files_.Start(loop);
  timer_.data = this;
  NOWCALLS_CHECK(uv_timer_init(loop, &timer_) == 0);
  NOWCALLS_CHECK(uv_timer_start(
                     &timer_,
                     [](uv_timer_t* timer) { static_cast<TlsPort*>(timer->data)->WarnOfEnd(); },
                     kLookMs, kLookMs) == 0);
  WarnOfEnd();
}

void TlsPort::ReadNow() {
  if (watching_) files_.ReadNow();
}

void TlsPort::StopWatching() {
  if (!std::exchange(watching_, false)) return;
  files_.Stop();
  uv_close(reinterpret_cast<uv_handle_t*>(&timer_), nullptr);
}

// A certificate and a key that do not belong together are often one file that is written later.
void TlsPort::Take(const Result<TlsContext>& read, bool asked) {
  const bool first = !std::exchange(read_before_, true);
  if (!read.ok()) {
    const std::string& what = read.status().message();
    if (std::exchange(trouble_, what) == what && !asked) return;
    return LogAt(Severity::kWarn,
                 "TLS: " + what + "; the certificate of before stays in use (" + tls_->names() +
                     ", until " + TimeText(tls_->ends_at_s()) + ")",
                 {{"reason", what}});
  }
  const bool other = (*read)->ends_at_s() != tls_->ends_at_s();
  trouble_.clear();
  tls_ = *read;
  counters_->certificate_ends_at_s = tls_->ends_at_s();
  if (when_replaced_) when_replaced_(*tls_);
  // The first read finds what the start has found, mostly.
  if (first && !asked && !other) return;
  LogAt(Severity::kInfo, "loaded " + config_->tls.certificate + ": " + DescribeTls(*tls_) +
                             "; it is for connections from now on");
  warned_s_ = 0;
  WarnOfEnd();
}

void TlsPort::WarnOfEnd() {
  const int64_t now_s = UnixSeconds();
  const int64_t left_s = tls_->ends_at_s() - now_s;
  if (left_s >= kWarnDays * kDayS || now_s - warned_s_ < kDayS) return;
  warned_s_ = now_s;
  const std::string when = TimeText(tls_->ends_at_s());
  const std::string ends = left_s <= 0 ? "has ended on " + when + ", and clients refuse it"
                                       : "ends on " + when + ", in " +
                                             Counted(static_cast<uint64_t>(left_s / kDayS), "day");
  LogAt(Severity::kWarn, "the TLS certificate of " + tls_->names() + " in " +
                             config_->tls.certificate + " " + ends +
                             ": put another in its place, which is read at once");
}

}  // namespace nowcalls::server
