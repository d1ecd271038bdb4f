#include "support/other_host.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <initializer_list>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/process.h"

namespace nowcalls::testing {
namespace {

constexpr char kIp[] = "/usr/sbin/ip";

bool Ip(const std::vector<std::string>& arguments) {
  std::vector<std::string> argv = {kIp};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return RunProgram(argv).exit_code == 0;
}

// 198.18.0.0/15 is for tests of networks (RFC 2544). Tests run at the same time: four addresses for
// each, by process id.
std::string AddressOf(int which) {
  const int place = getpid() % 16'384 * 4 + which;
  return "198.18." + std::to_string(place / 256) + "." + std::to_string(place % 256);
}

}  // namespace

OtherHost::OtherHost()
    : name_("nowcalls-" + std::to_string(getpid())),
      cable_("nc" + std::to_string(getpid())),
      ours_(AddressOf(1)),
      theirs_(AddressOf(2)) {}

OtherHost::~OtherHost() {
  if (::access(kIp, X_OK) == 0) Ip({"netns", "del", name_});  // The cable goes with it.
}

bool OtherHost::Plug() {
  const std::string near = cable_ + "a";
  const std::string far = cable_ + "b";
  const bool plugged =
      ::access(kIp, X_OK) == 0 && Ip({"netns", "add", name_}) &&
      Ip({"link", "add", near, "type", "veth", "peer", "name", far, "netns", name_}) &&
      Ip({"addr", "add", ours_ + "/30", "dev", near}) && Ip({"link", "set", near, "up"}) &&
      Ip({"-n", name_, "addr", "add", theirs_ + "/30", "dev", far}) &&
      Ip({"-n", name_, "link", "set", far, "up"});
  if (!plugged) MESSAGE("skipped: no network namespace (root, ip of iproute2)");
  return plugged;
}

void OtherHost::Run(const std::function<void()>& body) const {
  // A socket stays in the namespace of the thread that made it.
  std::thread([&] {
    const int space = open(("/run/netns/" + name_).c_str(), O_RDONLY | O_CLOEXEC);
    if (space >= 0 && setns(space, CLONE_NEWNET) == 0) body();
    if (space >= 0) close(space);
  }).join();
}

RpcClient OtherHost::Connect(const std::string& address) const {
  RpcClient client;
  Run([&] { client = RpcClient(address); });
  if (!client.connected()) throw std::runtime_error("cannot connect from the other host");
  return client;
}

void OtherHost::CutCable() const {
  if (!Ip({"-n", name_, "link", "set", cable_ + "b", "down"})) {
    throw std::runtime_error("cannot cut the cable");
  }
}

}  // namespace nowcalls::testing
