// OtherHost: a host of its own, as far as TCP can tell: a network namespace at the other end of a
// cable that a test can cut, without a word to anybody.
//
// Thread: that of the test. Only root may make one, where the kernel allows it and ip(8) is there.
#ifndef NOWCALLS_SUPPORT_OTHER_HOST_H_
#define NOWCALLS_SUPPORT_OTHER_HOST_H_

#include <functional>
#include <string>

#include "support/rpc_client.h"

namespace nowcalls::testing {

class OtherHost {
 public:
  OtherHost();
  ~OtherHost();
  OtherHost(const OtherHost&) = delete;
  OtherHost& operator=(const OtherHost&) = delete;

  // False, with a line in the test's output: it cannot be had here.
  bool Plug();
  // This machine's address, as the other host knows it.
  const std::string& our_address() const { return ours_; }
  // Calls `body` there: sockets that it makes are of that host.
  void Run(const std::function<void()>& body) const;
  // A client that runs there.
  RpcClient Connect(const std::string& address) const;
  void CutCable() const;

 private:
  const std::string name_;   // Of the namespace.
  const std::string cable_;  // Of both its ends, with a letter behind.
  const std::string ours_;
  const std::string theirs_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_OTHER_HOST_H_
