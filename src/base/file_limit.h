// The limit of open files of this process.
//
// Thread: the main one, before files are opened.
#ifndef NOWCALLS_BASE_FILE_LIMIT_H_
#define NOWCALLS_BASE_FILE_LIMIT_H_

#include <cstdint>

namespace nowcalls {

// Raises the soft limit to the hard one and returns it; 0: unknown.
uint64_t RaiseFileLimit();

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_FILE_LIMIT_H_
