// What file_calls_shim.cc writes down of a process: each call that changed a file or a directory,
// or made it durable, in the order in which they were made.
//
// One line a call: what it did, the path, and for kLink and kRename the path that there is now;
// tabs between them. Paths are absolute, without symbolic links.
#ifndef NOWCALLS_SHIM_FILE_CALLS_H_
#define NOWCALLS_SHIM_FILE_CALLS_H_

namespace nowcalls::testing {

// Names the file in the environment of the process; not NOWCALLS_..., which are settings.
inline constexpr char kFileCallsVariable[] = "FILE_CALLS_SHIM_LOG";

inline constexpr char kMadeFile[] = "make";
inline constexpr char kMadeDir[] = "mkdir";
inline constexpr char kWrote[] = "write";
inline constexpr char kCut[] = "cut";      // It is shorter now.
inline constexpr char kSynced[] = "sync";  // A file, or the names in a directory.
inline constexpr char kLinked[] = "link";
inline constexpr char kRenamed[] = "rename";
inline constexpr char kRemoved[] = "remove";
inline constexpr char kSaid[] = "say";  // Something on its standard output, which is a file.

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SHIM_FILE_CALLS_H_
