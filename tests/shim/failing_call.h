// What failing_call_shim.cc is told by the environment of a process, and tells of it.
#ifndef NOWCALLS_SHIM_FAILING_CALL_H_
#define NOWCALLS_SHIM_FAILING_CALL_H_

namespace nowcalls::testing {

// Which call fails, counted from 1; not NOWCALLS_..., which are settings. Absent: none.
inline constexpr char kFailingCallVariable[] = "FAILING_CALL";
// Its errno, as a number.
inline constexpr char kFailingErrnoVariable[] = "FAILING_CALL_ERRNO";
// Counted are calls on this directory and all that is in it; or `malloc`: calls for memory;
// or `fork`: those for a process.
inline constexpr char kFailingDirVariable[] = "FAILING_CALL_DIR";
// Gets the name of the call and its path when it fails.
inline constexpr char kFailingNoteVariable[] = "FAILING_CALL_NOTE";

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SHIM_FAILING_CALL_H_
