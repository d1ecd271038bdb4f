// Tally: how often a run did what a loop should do now and then, for its sum.
//
// Thread: any.
#ifndef NOWCALLS_CRASH_TALLY_H_
#define NOWCALLS_CRASH_TALLY_H_

#include <cstdint>
#include <map>
#include <string>

#include "crash/history.h"

namespace nowcalls::crash {

// Adds what the history of one cycle has of each; names read like "3 tokens taken back".
void AddToTally(const History& history, std::map<std::string, int64_t>* tally);

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_TALLY_H_
