#include "support/network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if_arp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <thread>

#include "support/process.h"

namespace nowcalls::testing {
namespace {

constexpr char kIp[] = "/usr/sbin/ip";
constexpr char kEnter[] = "/usr/bin/nsenter";
// In each namespace; of host 0 it is the bridge that the cables of all others end at.
constexpr char kDevice[] = "eth0";

bool Ip(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), kIp);
  return RunProgram(std::move(arguments)).exit_code == 0;
}

bool IpWithin(const std::vector<std::string>& launcher, const std::vector<std::string>& arguments) {
  std::vector<std::string> argv = launcher;
  argv.emplace_back(kIp);
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return RunProgram(std::move(argv)).exit_code == 0;
}

// Of the calling thread.
int OpenSpace() { return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC); }

std::string PathOf(int space) {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(space);
}

int NewPlainSocket() { return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); }

}  // namespace

std::unique_ptr<Network> Network::Make(size_t hosts) {
  std::unique_ptr<Network> network(new Network());
  if (!network->SetUp(hosts)) network.reset();
  return network;
}

Network::~Network() {
  if (before_ >= 0) setns(before_, CLONE_NEWNET);
  for (const Host& host : hosts_) {
    close(host.space);
    close(host.socket);
  }
  if (before_ >= 0) close(before_);
}

// In a namespace of their own, so that addresses are nobody else's, and all goes with the process.
std::string Network::Address(size_t host) { return "10.0.0." + std::to_string(host + 1); }

bool Network::SetUp(size_t hosts) {
  if (::access(kIp, X_OK) != 0 || ::access(kEnter, X_OK) != 0) return false;
  before_ = OpenSpace();
  if (before_ < 0 || unshare(CLONE_NEWNET) != 0) return false;
  hosts_.push_back({.space = OpenSpace(), .socket = NewPlainSocket()});
  bool works = Ip({"link", "set", "lo", "up"}) && Ip({"link", "add", kDevice, "type", "bridge"}) &&
               Ip({"addr", "add", Address(0) + "/24", "dev", kDevice}) &&
               Ip({"link", "set", kDevice, "up"});
  for (size_t host = 1; host < hosts; ++host) works = works && AddHost(host);
  return works;
}

bool Network::AddHost(size_t host) {
  Host made;
  std::thread([&made] {
    if (unshare(CLONE_NEWNET) != 0) return;
    made = {.space = OpenSpace(), .socket = NewPlainSocket()};
  }).join();
  if (made.space < 0) return false;
  hosts_.push_back(made);
  const std::string cable = "cable" + std::to_string(host);
  const auto within = Launcher(host);
  return Ip({"link", "add", cable, "type", "veth", "peer", "name", kDevice, "netns",
             PathOf(made.space)}) &&
         Ip({"link", "set", cable, "master", kDevice, "up"}) &&
         IpWithin(within, {"link", "set", "lo", "up"}) &&
         IpWithin(within, {"addr", "add", Address(host) + "/24", "dev", kDevice}) &&
         IpWithin(within, {"link", "set", kDevice, "up"});
}

std::vector<std::string> Network::Launcher(size_t host) const {
  if (host == 0) return {};
  return {kEnter, "--net=" + PathOf(hosts_[host].space)};
}

void Network::Part(size_t one, size_t other) {
  parted_.emplace_back(one, other);
  if (!MisleadTo(one, other, true) || !MisleadTo(other, one, true)) {
    throw std::runtime_error("cannot part two hosts");
  }
}

void Network::Heal() {
  for (const auto& [one, other] : std::exchange(parted_, {})) {
    if (!MisleadTo(one, other, false) || !MisleadTo(other, one, false)) {
      throw std::runtime_error("cannot bring two hosts together");
    }
  }
}

// The host believes that the other one has a hardware address that nobody has.
bool Network::MisleadTo(size_t from, size_t to, bool misled) const {
  arpreq request{};
  auto* const address = reinterpret_cast<sockaddr_in*>(&request.arp_pa);
  address->sin_family = AF_INET;
  inet_pton(AF_INET, Address(to).c_str(), &address->sin_addr);
  request.arp_ha.sa_family = ARPHRD_ETHER;
  constexpr char kNobody[] = "\x02\x00\x00\x00\x00\x01";
  std::memcpy(request.arp_ha.sa_data, kNobody, sizeof(kNobody) - 1);
  request.arp_flags = ATF_COM | ATF_PERM;
  std::memcpy(request.arp_dev, kDevice, sizeof(kDevice));
  return ioctl(hosts_[from].socket, misled ? SIOCSARP : SIOCDARP, &request) == 0;
}

}  // namespace nowcalls::testing
