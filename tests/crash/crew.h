// Crew: all clients of a crash run, of every kind, which work side by side.
//
// Thread: one, which starts those of the clients and joins them.
#ifndef NOWCALLS_CRASH_CREW_H_
#define NOWCALLS_CRASH_CREW_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/prng.h"
#include "crash/checker.h"
#include "crash/frame_client.h"
#include "crash/load_client.h"
#include "crash/operator.h"

namespace nowcalls::crash {

class Crew {
 public:
  // `instances`: two processes share a client id. Listings of a running server tell them apart only
  // while both have a session.
  Crew(Prng* prng, bool instances);

  // They work until their connection ends or `signals` says stop. `log_path`: of the log of a name.
  void Start(const std::string& address,
             const std::function<std::string(const std::string&)>& log_path, LoadSignals* signals);
  void Join();
  // What they should never have seen.
  std::vector<std::string> Problems() const;
  // Each may release and keep what the ledger has of its own from now on.
  void Adopt(const LedgerView& ledger);

 private:
  void Add(LoadOptions options, Prng* prng);

  Operator operator_;
  std::vector<std::unique_ptr<LoadClient>> clients_;
  FrameClient frames_;
  std::vector<std::thread> threads_;
};

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_CREW_H_
