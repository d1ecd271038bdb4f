// Connection: one connection of a load, its bytes and its protocol.
//
// Thread: the loop's. Owned by the driver and freed after the loop has ended. What a read brings is
// timed once, when the read returns. Output leaves with Flush, in one write; what the socket does
// not take is sent when it does.
#ifndef NOWCALLS_BENCH_CONNECTION_H_
#define NOWCALLS_BENCH_CONNECTION_H_

#include <sys/socket.h>
#include <uv.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "bench/load.h"
#include "bench/protocol.h"
#include "nowcalls/status.h"
#include "wire/output_buffer.h"

namespace nowcalls::bench {

// Shared by all connections of a loop; libuv fills it and hands it over in one step.
struct ReadBuffer {
  char bytes[256 * 1024];
};

class Connection {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void OnGreeted(Connection* connection) = 0;
    // False: nothing was asked that this could answer. It ends the connection.
    virtual bool OnAnswer(Connection* connection, const Answer& answer, const Moment& now) = 0;
    // After the last answer of a read.
    virtual void OnAnswersTaken(Connection* connection, const Moment& now) = 0;
    // It is closed, or could not be opened; the reason continues "connection N to HOST:PORT ".
    virtual void OnLost(Connection* connection, const Status& reason) = 0;
  };

  Connection(uint32_t number, std::unique_ptr<Protocol> protocol, ReadBuffer* buffer, Owner* owner)
      : number_(number), protocol_(std::move(protocol)), buffer_(buffer), owner_(owner) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Connects and greets.
  void Open(uv_loop_t* loop, const sockaddr* address);
  // No callback follows.
  void Close();
  void Flush();

  uint32_t number() const { return number_; }
  Protocol* protocol() { return protocol_.get(); }
  wire::OutputBuffer* out() { return &out_; }

 private:
  void OnConnected(int status);
  void OnRead(ssize_t size);
  void OnWritten(int status);
  // Returns how many of the bytes were whole answers.
  size_t TakeAnswers(std::string_view bytes, const Moment& now);
  void TakeGreeting(const Answer& answer);
  void Lose(const Status& reason);
  // By an error of libuv.
  void LoseBy(ssize_t error);
  uv_stream_t* stream() { return reinterpret_cast<uv_stream_t*>(&tcp_); }

  const uint32_t number_;
  const std::unique_ptr<Protocol> protocol_;
  ReadBuffer* const buffer_;
  Owner* const owner_;
  uv_tcp_t tcp_{};
  uv_connect_t connect_{};
  uv_write_t write_{};
  bool open_ = false;
  bool greeted_ = false;
  bool writing_ = false;
  wire::OutputBuffer out_;
  wire::OutputBuffer sending_;  // libuv has it while writing_.
  std::string rest_;            // The beginning of an answer that has not come whole.
};

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_CONNECTION_H_
