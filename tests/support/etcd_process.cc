#include "support/etcd_process.h"

#include <signal.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

#include "support/poll_until.h"
#include "support/tcp.h"

namespace nowcalls::testing {
namespace {

bool Accepts(const HostPort& address) {
  const int fd = ConnectTo(address.ToString());
  if (fd >= 0) close(fd);
  return fd >= 0;
}

}  // namespace

EtcdProcess::EtcdProcess(std::vector<std::string> arguments, std::string scheme)
    : arguments_(std::move(arguments)),
      scheme_(std::move(scheme)),
      address_{"127.0.0.1", FreePort()},
      peers_{"127.0.0.1", FreePort()} {
  Start();
}

void EtcdProcess::Kill() {
  process_->Signal(SIGKILL);
  process_->Wait();
  process_.reset();
}

// Short elections: one node has nobody to wait for.
void EtcdProcess::Start() {
  const std::string clients = scheme_ + "://" + address_.ToString();
  const std::string peers = "http://" + peers_.ToString();
  Process::Options options;
  options.argv = {"/usr/bin/etcd", "--name", "one", "--data-dir", dir_.Sub("data")};
  const std::vector<std::string> more = {
      "--listen-client-urls", clients,        "--advertise-client-urls",       clients,
      "--listen-peer-urls",   peers,          "--initial-advertise-peer-urls", peers,
      "--initial-cluster",    "one=" + peers, "--heartbeat-interval",          "10",
      "--election-timeout",   "100"};
  options.argv.insert(options.argv.end(), more.begin(), more.end());
  options.argv.insert(options.argv.end(), arguments_.begin(), arguments_.end());
  options.stderr_path = dir_.Sub("log");
  process_.emplace(options);
  if (!PollUntil(kPatienceMs, [&] { return !process_->Running() || Accepts(address_); }) ||
      !process_->Running()) {
    throw std::runtime_error("etcd does not start: " + log());
  }
}

}  // namespace nowcalls::testing
