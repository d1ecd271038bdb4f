// TcpFront: a session over TCP.
//
// Thread: as Front.
#ifndef NOWCALLS_LIBRARY_TCP_FRONT_H_
#define NOWCALLS_LIBRARY_TCP_FRONT_H_

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "client/dial.h"
#include "library/front.h"
#include "net/socket.h"

namespace nowcalls::library {

class TcpFront final : public Front {
 public:
  // kIoError: no eventfd. kUnavailable: no thread.
  static Result<std::shared_ptr<TcpFront>> Start(const ClientOptions& options);

 private:
  // Outlives the front during a dial.
  struct Doorbell {
    ~Doorbell();
    void Ring() const;
    void Silence() const;

    int fd = -1;
    std::mutex mutex;
    std::optional<Result<net::Socket>> dialled;
  };

  TcpFront(const ClientOptions& options, std::shared_ptr<Doorbell> doorbell)
      : Front(options),
        timeout_ms_(options.timeout.count()),
        security_(std::make_shared<const client::Security>(
            client::Security{options.tls, options.secret})),
        doorbell_(std::move(doorbell)) {}

  void RunLoop() override;
  void WaitFor(Waiter* waiter, Lock* lock) override;
  void Flush(bool waits) override;
  void Wake() override { doorbell_->Ring(); }
  void Dial(int64_t now_ms);
  void TakeDialled(int64_t now_ms);
  void Receive(int64_t now_ms);
  void Disconnect(const Status& reason, int64_t now_ms);
  // Whether waiting threads read, not the loop.
  bool LeavesReading(int64_t now_ms) const {
    return reading_ || now_ms - read_ms_ < kLeaveReadingMs;
  }

  // After a waiting thread's read.
  static constexpr int64_t kLeaveReadingMs = 5;

  const int64_t timeout_ms_;
  const std::shared_ptr<const client::Security> security_;  // Outlives the front during a dial.
  const std::shared_ptr<Doorbell> doorbell_;
  bool dialling_ = false;
  std::optional<net::Socket> socket_;
  std::optional<Status> broken_;  // Found by another thread's Flush.
  std::string received_;

  bool reading_ = false;                // One does.
  bool loop_reads_ = false;             // The loop sleeps until something arrives.
  int64_t read_ms_ = INT64_MIN / 2;     // When one did last.
  std::optional<net::Socket> retired_;  // Broken while one waited at it.
  std::list<Waiter*> waiting_;          // Threads in their sleep.
};

}  // namespace nowcalls::library

#endif  // NOWCALLS_LIBRARY_TCP_FRONT_H_
