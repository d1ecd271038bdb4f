// Connection: one connection of a load.
//
// Thread: the loop's. LoadLoop frees it. Answers of one receive share one time.
#ifndef NOWCALLS_BENCH_CONNECTION_H_
#define NOWCALLS_BENCH_CONNECTION_H_

#include <sys/socket.h>
#include <sys/types.h>
#include <uv.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "bench/dialect.h"
#include "bench/workload.h"
#include "net/channel.h"
#include "net/socket_turn.h"
#include "nowcalls/status.h"
#include "wire/output_buffer.h"

namespace nowcalls::bench {

class Connection final : public net::SocketTurn::Socket {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void OnGreeted(Connection* connection) = 0;
    // False: it answers no request; the connection ends.
    virtual bool OnAnswer(Connection* connection, const Answer& answer, const Moment& now) = 0;
    virtual void OnAnswersTaken(Connection* connection, const Moment& now) = 0;
    // Closed, or not opened; the reason continues "connection N to HOST:PORT ".
    virtual void OnLost(Connection* connection, const Status& reason) = 0;
  };

  Connection(uint32_t number, std::unique_ptr<Dialect> dialect,
             std::unique_ptr<net::Channel> channel, net::SocketTurn* turn, Owner* owner)
      : number_(number),
        dialect_(std::move(dialect)),
        channel_(std::move(channel)),
        turn_(turn),
        owner_(owner) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Open(uv_loop_t* loop, const sockaddr* address);
  void Close();
  void Flush();

  // net::SocketTurn::Socket.
  int fd() const override { return fd_; }
  bool TakeReadable() override;
  void Received(ssize_t result, std::string_view bytes) override;
  void Sent(ssize_t result, std::string_view bytes) override;

  uint32_t number() const { return number_; }
  Dialect* dialect() { return dialect_.get(); }
  wire::OutputBuffer* out() { return &out_; }

 private:
  void Poll(int events);
  void OnEvents(bool error, int events);
  void OnConnected();
  void SendNow(std::string_view for_socket);
  void Keep(std::string_view for_socket);
  void SendUnsent();
  void TakeBytes(std::string_view bytes, const Moment& now);
  // Returns the bytes of whole answers.
  size_t TakeAnswers(std::string_view bytes, const Moment& now);
  void TakeGreeting(const Answer& answer);
  void Lose(const Status& reason);
  // -errno, or 0: the end of the stream.
  void LoseBy(ssize_t error);

  const uint32_t number_;
  const std::unique_ptr<Dialect> dialect_;
  const std::unique_ptr<net::Channel> channel_;
  net::SocketTurn* const turn_;
  Owner* const owner_;
  int fd_ = -1;
  uv_poll_t poll_{};
  bool open_ = false;
  bool connected_ = false;
  bool greeted_ = false;
  bool readable_ = false;   // As the turn was told.
  wire::OutputBuffer out_;  // Of the dialect.
  std::string unsent_;      // For the socket, which did not take it at once.
  std::string rest_;        // The beginning of an answer that has not come whole.
};

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_CONNECTION_H_
