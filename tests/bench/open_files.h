// The limit of open files, which the servers inherit.
//
// Thread: the main one, before it starts others.
#ifndef NOWCALLS_BENCH_OPEN_FILES_H_
#define NOWCALLS_BENCH_OPEN_FILES_H_

namespace nowcalls::compare {

// Raises the soft limit to what may be had without being root.
void AllowManyOpenFiles();

}  // namespace nowcalls::compare

#endif  // NOWCALLS_BENCH_OPEN_FILES_H_
