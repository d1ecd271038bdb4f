// Network: hosts with addresses of their own on one cable, as far as TCP can tell: network
// namespaces, between any two of which a test swallows all packets without a word.
//
// Thread: that of the test. Host 0 is the test itself: threads that it starts and programs that it
// runs while the network lives are there. Only root may make one, where the kernel allows it and
// ip(8) and nsenter(1) are there.
#ifndef NOWCALLS_SUPPORT_NETWORK_H_
#define NOWCALLS_SUPPORT_NETWORK_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace nowcalls::testing {

class Network {
 public:
  // Null: it cannot be had here.
  static std::unique_ptr<Network> Make(size_t hosts);
  // REQUIRES: the thread of Make.
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  static std::string Address(size_t host);
  // What a program's arguments begin with to run there. It keeps its process id.
  std::vector<std::string> Launcher(size_t host) const;

  // Packets between the two are lost from now on. What TCP sent meanwhile comes late, behind Heal.
  void Part(size_t one, size_t other);
  void Heal();  // All.

 private:
  struct Host {
    int space = -1;
    int socket = -1;  // Of that host; by it neighbours are told and forgotten.
  };

  Network() = default;
  bool SetUp(size_t hosts);
  bool AddHost(size_t host);
  bool MisleadTo(size_t from, size_t to, bool misled) const;

  int before_ = -1;  // Where the thread was.
  std::vector<Host> hosts_;
  std::vector<std::pair<size_t, size_t>> parted_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_NETWORK_H_
