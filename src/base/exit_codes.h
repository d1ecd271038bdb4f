// Exit codes of all nowcalls programs, from sysexits.h if one fits.
#ifndef NOWCALLS_BASE_EXIT_CODES_H_
#define NOWCALLS_BASE_EXIT_CODES_H_

namespace nowcalls {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;  // The request was understood and refused.
inline constexpr int kExitUsage = 64;   // EX_USAGE: flags, environment, configuration or rules.
inline constexpr int kExitCorruption =
    65;  // EX_DATAERR: the ledger is damaged or of another format.
inline constexpr int kExitUnavailable = 69;  // EX_UNAVAILABLE: the server cannot be reached.
inline constexpr int kExitIoError = 74;      // EX_IOERR: disk, socket or lock.

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_EXIT_CODES_H_
