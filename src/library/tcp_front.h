// TcpFront: a session whose bytes go over TCP.
//
// Thread: the loop polls the socket and an eventfd. Dialling, which looks names up, is done on a
// thread for each attempt, which is left to itself when the client closes meanwhile. Any thread
// that asks a call sends it at once if the socket takes it. A thread that waits for its answer
// reads the socket itself for a while, so that a quick answer costs no change of threads.
#ifndef NOWCALLS_LIBRARY_TCP_FRONT_H_
#define NOWCALLS_LIBRARY_TCP_FRONT_H_

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "client/socket.h"
#include "library/front.h"

namespace nowcalls::library {

class TcpFront final : public Front {
 public:
  // kIoError: the system gives no eventfd. kUnavailable: it gives no thread.
  static Result<std::shared_ptr<TcpFront>> Start(const ClientOptions& options);

 private:
  // An eventfd, and what a dial has come to. It outlives the front while a dial goes on.
  struct Doorbell {
    ~Doorbell();
    void Ring() const;
    void Silence() const;

    int fd = -1;
    std::mutex mutex;
    std::optional<Result<client::Socket>> dialled;
  };

  TcpFront(const ClientOptions& options, std::shared_ptr<Doorbell> doorbell)
      : Front(options), timeout_ms_(options.timeout.count()), doorbell_(std::move(doorbell)) {}

  void RunLoop() override;
  void WaitFor(Waiter* waiter, Lock* lock) override;
  void Flush(bool waits) override;
  void Wake() override { doorbell_->Ring(); }
  void Dial(int64_t now_ms);
  void TakeDialled(int64_t now_ms);
  void Receive(int64_t now_ms);
  void Disconnect(const Status& reason, int64_t now_ms);
  // Whether the loop leaves what arrives to threads that wait for it.
  bool LeavesReading(int64_t now_ms) const {
    return reading_ || now_ms - read_ms_ < kLeaveReadingMs;
  }

  // After a waiting thread has read. The next blocking call probably follows.
  static constexpr int64_t kLeaveReadingMs = 5;

  const int64_t timeout_ms_;
  const std::shared_ptr<Doorbell> doorbell_;
  bool dialling_ = false;
  std::optional<client::Socket> socket_;
  std::optional<Status> broken_;  // Found by another thread's Flush.
  std::string received_;

  // Waiting threads that read themselves.
  bool reading_ = false;                   // One does.
  bool loop_reads_ = false;                // The loop sleeps until something arrives.
  int64_t read_ms_ = INT64_MIN / 2;        // When one did last.
  std::optional<client::Socket> retired_;  // Broken while one waited at it.
  std::list<Waiter*> waiting_;             // Threads in their sleep.
};

}  // namespace nowcalls::library

#endif  // NOWCALLS_LIBRARY_TCP_FRONT_H_
