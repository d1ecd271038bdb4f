// Proxy: passes bytes between clients and a server, and holds them back when a test says so: a
// network that swallows everything without a word.
//
// Thread: any. It has one of its own.
#ifndef NOWCALLS_SUPPORT_PROXY_H_
#define NOWCALLS_SUPPORT_PROXY_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

namespace nowcalls::testing {

class Proxy {
 public:
  // `target` is 127.0.0.1:PORT.
  explicit Proxy(std::string target);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // Connections so far that reached the server.
  int connections() const { return connections_; }
  // Bytes and ends of connections that are held pass when they are let go.
  void HoldRequests(bool held) { requests_held_ = held; }
  void HoldAnswers(bool held) { answers_held_ = held; }
  void Cut() { cuts_ = true; }  // Ends all connections that there are.

 private:
  void Run();

  const std::string target_;
  uint16_t port_ = 0;
  const int listener_;
  std::atomic<bool> requests_held_{false};
  std::atomic<bool> answers_held_{false};
  std::atomic<int> connections_{0};
  std::atomic<bool> cuts_{false};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_PROXY_H_
