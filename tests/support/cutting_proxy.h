// CuttingProxy: stands between clients and a server on 127.0.0.1, and cuts them off in silence.
//
// Thread: any, for all members; a thread of its own moves the bytes.
#ifndef NOWCALLS_SUPPORT_CUTTING_PROXY_H_
#define NOWCALLS_SUPPORT_CUTTING_PROXY_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace nowcalls::testing {

class CuttingProxy {
 public:
  enum class Mode {
    kForward,
    // Bytes of either side vanish; both see a connection that stands.
    kBlackHole,
    // The server sees the clients leave, the clients see a connection that stands.
    kServerSideGone,
  };

  explicit CuttingProxy(const std::string& server);
  ~CuttingProxy();
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  const std::string& address() const { return address_; }
  // kForward ends the connections that were cut, so that clients come again.
  void Set(Mode mode);

 private:
  struct Pair {
    int client = -1;
    int server = -1;
    bool cut = false;
  };

  void Run();
  void Accept();
  void Move(Pair* pair, bool from_client);

  const std::string server_;
  std::string address_;
  int listener_ = -1;
  int wake_[2] = {-1, -1};
  std::mutex mutex_;
  Mode mode_ = Mode::kForward;
  bool stops_ = false;
  std::vector<Pair> pairs_;  // The thread's, and with the mutex.
  std::thread thread_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_CUTTING_PROXY_H_
