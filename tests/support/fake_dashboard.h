// FakeDashboard: what Sentinel's dashboard is to a machine that registers there: an HTTP server
// that takes POST /registry/machine.
//
// Thread: the test's and its own, which answers one connection after the other. The destructor
// joins it.
#ifndef NOWCALLS_SUPPORT_FAKE_DASHBOARD_H_
#define NOWCALLS_SUPPORT_FAKE_DASHBOARD_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace nowcalls::testing {

class FakeDashboard {
 public:
  // As Spring's dashboard answers, in one chunk.
  static const char* const kTakes;

  FakeDashboard();
  ~FakeDashboard();
  FakeDashboard(const FakeDashboard&) = delete;
  FakeDashboard& operator=(const FakeDashboard&) = delete;

  uint16_t port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  // The bytes of the answers from now on; may be none. `leave_open`: the connection is not closed
  // behind them.
  void AnswerWith(const std::string& bytes, bool leave_open = false);

  // Requests so far, whole.
  std::vector<std::string> Requests() const;
  // The fields of the last request's form; empty without one.
  std::map<std::string, std::string> LastForm() const;

 private:
  void Run();
  void Serve(int fd);

  uint16_t port_ = 0;
  int listener_;

  mutable std::mutex mutex_;
  std::string answer_{kTakes};
  bool leaves_open_ = false;
  bool ending_ = false;
  std::vector<std::string> requests_;
  std::vector<int> left_open_;

  std::thread thread_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_FAKE_DASHBOARD_H_
