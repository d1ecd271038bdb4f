// Contender: a server that is compared, in a directory and with a port of its own.
//
// Thread: the main one; the process ends with it (support/process.h). Everything that waits ends in
// time and throws std::runtime_error, with the end of the server's log, or Interrupted.
#ifndef NOWCALLS_BENCH_CONTENDER_H_
#define NOWCALLS_BENCH_CONTENDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/bench_figures.h"
#include "support/certificates.h"
#include "support/process.h"

namespace nowcalls::compare {

// With Tls loads speak TLS. What the contender itself asks is plain.
enum class ContenderKind : uint8_t { kNowcalls, kRedis, kNowcallsTls, kRedisTls };
std::string ContenderName(ContenderKind kind);

class Contender {
 public:
  virtual ~Contender() = default;
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;

  // Starts it and waits until it has answered a ping with more than that it is still loading; both
  // are asked every few milliseconds. The time from one to the other in seconds.
  double Start();
  bool Running() { return process_ && process_->Running(); }
  void Kill9();
  pid_t pid() const { return process_->pid(); }
  uint64_t resident_bytes() const { return testing::ResidentBytes(pid()); }

  virtual std::string url() const = 0;
  // The words of nowcalls-bench with which it speaks TLS; none: plain.
  std::vector<std::string> TlsWords() const;
  // Tokens that are out, of the flow that nowcalls-bench fill uses without other options.
  virtual uint64_t Tokens() = 0;
  // Waits for work that it does beside its clients, such as compressing its log, to be done.
  virtual void Settle() = 0;

 protected:
  // Uses DIR/data, which it makes, and DIR/server.log; with TLS also a certificate of its own.
  Contender(ContenderKind kind, std::string dir);
  const std::string& dir() const { return dir_; }
  std::string LogEnd() const;
  const std::optional<testing::CertificateFiles>& certificate() const { return certificate_; }

  // Called for each start.
  virtual std::vector<std::string> Command() = 0;
  virtual bool Answers() = 0;

 private:
  std::string name_;
  std::string dir_;
  std::optional<testing::CertificateFiles> certificate_;
  std::optional<testing::Process> process_;
};

class NowcallsContender : public Contender {
 public:
  explicit NowcallsContender(ContenderKind kind, std::string dir);

  std::string url() const override { return "nowcalls://" + address_; }
  uint64_t Tokens() override;
  void Settle() override {}
  // What the method `info` answers.
  Json Info() const;

 private:
  std::vector<std::string> Command() override;
  bool Answers() override;

  std::string address_;
};

// Redis as it keeps what it has acknowledged: appendonly, appendfsync always, no snapshots. All
// else is left as Redis has it, also the rewriting of its log: without, the log would grow without
// end.
class RedisContender : public Contender {
 public:
  RedisContender(ContenderKind kind, std::string program, std::string dir);

  std::string url() const override;
  uint64_t Tokens() override;
  void Settle() override;

 private:
  std::vector<std::string> Command() override;
  bool Answers() override;
  // The answer to one command; an error's text begins with '-'. Empty: none came.
  std::string Ask(const std::string& command, int64_t timeout_ms) const;

  std::string program_;
  uint16_t port_ = 0;
  uint16_t tls_port_ = 0;  // 0: it has none.
};

// The program of that name on $PATH; empty when there is none.
std::string FindProgram(const std::string& name);

}  // namespace nowcalls::compare

#endif  // NOWCALLS_BENCH_CONTENDER_H_
