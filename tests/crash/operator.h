// Operator: who takes tokens back while clients work, drains flows, and retires one.
//
// Thread: Run on a thread of its own, the rest between two runs. It writes a log like clients
// (history.h), in which an answer tells what is gone. Its rule for the flow of "retired" comes and
// goes, and purges end what is left of it.
#ifndef NOWCALLS_CRASH_OPERATOR_H_
#define NOWCALLS_CRASH_OPERATOR_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/prng.h"
#include "crash/history.h"
#include "crash/load_client.h"
#include "support/rpc_client.h"

namespace nowcalls::crash {

class Operator {
 public:
  explicit Operator(uint64_t seed) : prng_(seed) {}

  // Works until the connection ends or it is told to stop.
  void Run(const std::string& address, const std::string& log_path, const LoadSignals* signals);

  // What it should never see; empty after a run as it should be.
  const std::string& problem() const { return problem_; }

  // Ends every drain and gives "retired" its rule, for the end of the loop. Throws
  // std::runtime_error when the server does not take it.
  static void Settle(const std::string& address);

 private:
  void ListWaiters();
  void ActOnce();
  void ReclaimOne();
  void RetireOrReturn(int64_t limit);
  // Logs it, asks it, and logs the answer.
  void Do(Operation operation, const char* method, const testing::Json& params);

  Prng prng_;
  testing::RpcClient rpc_;
  std::unique_ptr<HistoryWriter> log_;
  std::string problem_;
  int64_t next_number_ = 1;
  bool lost_ = false;  // The connection.
};

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_OPERATOR_H_
