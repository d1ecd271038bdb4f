#include "web/http_server.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "net/address.h"
#include "web/host_names.h"
#include "web/http_door.h"

namespace nowcalls::web {
namespace {

constexpr int kBacklog = 128;
constexpr int64_t kProbeMsMax = 5'000;

bool SetOptions(int fd) {
  // A server that restarts finds connections of the last one in TIME_WAIT.
  const int on = 1;
  return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0;
}

// The sockets that a server listens on; it closes them.
class Listening {
 public:
  Listening() = default;
  ~Listening() { Close(); }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

  // At all addresses, at `port`; 0: at the one that the first gets. An address that this machine
  // does not have, such as ::1 without IPv6, is passed over if another is there.
  Status Take(const std::vector<net::SocketAddress>& addresses, uint16_t port) {
    Close();
    Status none;
    for (const net::SocketAddress& address : addresses) {
      HostPort at = net::ToHostPort(address);
      at.port = port == 0 && !fds_.empty() ? net::LocalEndOf(fds_.front()).port : port;
      const Result<int> fd = net::Listen(at, kBacklog, SetOptions);
      if (fd.ok()) {
        fds_.push_back(*fd);
      } else if (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT) {
        none = fd.status();
      } else {
        return fd.status();
      }
    }
    return fds_.empty() ? none : Status::Ok();
  }
  const std::vector<int>& fds() const { return fds_; }

 private:
  void Close() {
    for (const int fd : std::exchange(fds_, {})) close(fd);
  }

  std::vector<int> fds_;
};

Status ListenOnFirst(const HttpServer::Options& options, Listening* listening) {
  const Result<std::vector<net::SocketAddress>> addresses = net::ResolveAll(options.listen);
  if (!addresses.ok()) return addresses.status();
  // A port that the system picked for the first address may be taken at another.
  constexpr uint16_t kPicksMax = 16;
  const bool picks = options.listen.port == 0 && addresses->size() > 1;
  const uint16_t tries = picks ? kPicksMax : options.ports_above;
  uint16_t port = options.listen.port;
  for (uint16_t tried = 0;; ++tried) {
    Status taken = listening->Take(*addresses, port);
    const bool last = tried == tries || port == UINT16_MAX;
    if (taken.ok() || last || taken.code() != StatusCode::kIoError) return taken;
    if (port != 0) ++port;
  }
}

}  // namespace

struct HttpServer::Impl {
  explicit Impl(const Options& the_options) : options(the_options) {}

  Status Start(Handler handler);

  const Options options;
  Listening listening;
  std::vector<HostPort> addresses;
  std::unique_ptr<HostNames> names;
  Guests guests;
  std::unique_ptr<HttpDaemon> probes;
  std::unique_ptr<HttpDaemon> others;
  std::unique_ptr<HttpDaemon> tls;  // Null: without.
  std::unique_ptr<HttpDoor> door;   // Ends first.
};

Status HttpServer::Impl::Start(Handler handler) {
  NOWCALLS_RETURN_IF_ERROR(ListenOnFirst(options, &listening));
  for (const int fd : listening.fds()) addresses.push_back(net::LocalEndOf(fd));
  names = std::make_unique<HostNames>(options.listen, addresses, options.hosts);
  // The daemon with a thread. It answers probe paths, too, for connections that began with another.
  HttpDaemon::Options of_others{.takes_posts = options.takes_posts,
                                .exchange_ms_max = options.exchange_ms_max,
                                .probe_paths = options.probe_paths,
                                .short_paths = options.short_paths,
                                .closes = options.closes,
                                .names = names.get(),
                                .takes_plain = options.takes_plain,
                                .log = options.log};
  // The daemon of probes: the door's thread drives it, and every connection is for one probe.
  HttpDaemon::Options of_probes{.own_thread = false,
                                .exchange_ms_max = std::min(options.exchange_ms_max, kProbeMsMax),
                                .probe_paths = options.probe_paths,
                                .closes = true,
                                .names = names.get()};
  auto started = HttpDaemon::Start(of_others, &guests, handler);
  if (!started.ok()) return started.status();
  others = *std::move(started);
  if (options.tls) {
    of_others.tls = options.tls;
    started = HttpDaemon::Start(of_others, &guests, std::move(handler));
    if (!started.ok()) return started.status();
    tls = *std::move(started);
  }
  started = HttpDaemon::Start(of_probes, &guests, options.probe);
  if (!started.ok()) return started.status();
  probes = *std::move(started);
  // Last, since it needs all before it: from its Start on connections are let in.
  door = std::make_unique<HttpDoor>(
      listening.fds(), HttpDoor::Paths{options.probe_paths, options.short_paths},
      options.exchange_ms_max, &guests, probes.get(), others.get(), tls.get());
  return door->Start();
}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const Options& options, Handler handler) {
  auto impl = std::make_unique<Impl>(options);
  NOWCALLS_RETURN_IF_ERROR(impl->Start(std::move(handler)));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() = default;

const std::vector<HostPort>& HttpServer::addresses() const { return impl_->addresses; }

void HttpServer::WakeStreams() {
  impl_->others->WakeStreams();
  if (impl_->tls != nullptr) impl_->tls->WakeStreams();
}

Status HttpServer::SetCertificate(const Https& https) {
  if (impl_->tls == nullptr) {
    return Status::FailedPrecondition("HTTP began without TLS: start the server anew");
  }
  return impl_->tls->SetCertificate(https);
}

}  // namespace nowcalls::web
