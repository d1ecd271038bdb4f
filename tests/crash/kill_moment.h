// What a server of the crash loop is doing when it is killed.
//
// Thread: any.
#ifndef NOWCALLS_CRASH_KILL_MOMENT_H_
#define NOWCALLS_CRASH_KILL_MOMENT_H_

#include <string>
#include <vector>

#include "base/prng.h"

namespace nowcalls::crash {

enum class KillMoment {
  kLoad,       // Nothing but the clients' requests.
  kRecovery,   // It has just been started.
  kBackup,     // A backup has been asked for.
  kRulesLoad,  // A set of rules has been sent, or a rule file rewritten.
  kSweep,      // Thousands of tokens expire.
  kSigterm,    // SIGTERM; it is to end by itself.
};

std::string NameOf(KillMoment moment);

// Deals the moments in random order, with the same share of each in every twenty.
class KillMoments {
 public:
  KillMoment Next(Prng* prng);

 private:
  std::vector<KillMoment> deck_;
};

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_KILL_MOMENT_H_
