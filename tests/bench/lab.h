// Lab: where a comparison takes place: its directory, the servers in it, and nowcalls-bench.
//
// Thread: the main one. What it starts ends with it, and its directory goes away with it unless it
// is to be kept. Throws std::runtime_error.
#ifndef NOWCALLS_BENCH_LAB_H_
#define NOWCALLS_BENCH_LAB_H_

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/bench_figures.h"
#include "bench/contender.h"

namespace nowcalls::compare {

// The server could not keep up with an open loop.
struct Overload : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct LabOptions {
  std::string parent;  // The directory is made in this one, which is made if it is not there.
  bool keep_dir = false;
  std::string redis_program;
};

// A run of nowcalls-bench that may go on beside others.
class BenchRun {
 public:
  BenchRun(std::vector<std::string> words, const std::string& output_prefix);

  // Waits for its end, `timeout_ms` at most, and reads what it printed. Throws Overload, or
  // std::runtime_error with what it said on stderr.
  Json Finish(int64_t timeout_ms);

 private:
  std::vector<std::string> words_;
  std::string out_;
  std::string err_;
  testing::Process process_;
};

class Lab {
 public:
  explicit Lab(LabOptions options);
  ~Lab();
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;

  const std::string& dir() const { return dir_; }

  // A server that is not started yet, in a new directory that goes away with it.
  std::unique_ptr<Contender> NewContender(ContenderKind kind);
  std::unique_ptr<NowcallsContender> NewNowcalls();

  // `words` are its arguments besides --target, --server-pid and --format.
  BenchRun StartBench(std::vector<std::string> words, const Contender& contender);
  // Waits for its end, and keeps what it printed for TakeRuns.
  Json Finish(BenchRun* run, int64_t timeout_ms);
  // Both; `lasts_s` is what it needs if all goes well.
  Json RunBench(std::vector<std::string> words, const Contender& contender, double lasts_s);
  // Acquires tokens and leaves them; `words` as above, besides --tokens and --connections.
  Json Fill(uint64_t tokens, const Contender& contender, std::vector<std::string> words = {});

  // Writes out what the page cache holds of the directory's disk, so that no round pays for the
  // one before.
  void SyncDisk() const;

  // What nowcalls-bench printed since the last call.
  Json TakeRuns();

 private:
  std::unique_ptr<NowcallsContender> NewNowcalls(ContenderKind kind);
  std::string NewPath(const std::string& name);

  LabOptions options_;
  std::string dir_;
  int made_ = 0;
  Json runs_ = Json::array();
};

}  // namespace nowcalls::compare

#endif  // NOWCALLS_BENCH_LAB_H_
