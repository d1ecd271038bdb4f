// Whether anybody else uses a file, which decides whether it may be written over or cut.
//
// A reader beside a server, a backup or a copy keeps what it has opened, also when the name is
// gone. So a file is changed only when nobody has it open.
//
// Thread: any.
#ifndef NOWCALLS_STORE_DISK_FILE_USE_H_
#define NOWCALLS_STORE_DISK_FILE_USE_H_

#include <cstdint>
#include <string>

namespace nowcalls::store {

// Whether the file behind `fd`, open for writing, has `names` names and no process has it open
// elsewhere. False also where the file system cannot tell.
bool IsUsedOnlyHere(int fd, uint64_t names);

// Whether the file at `path` has one name and no process has it open. `bytes` gets its size.
// REQUIRES: nobody opens it by this name meanwhile.
bool IsUnused(const std::string& path, uint64_t* bytes);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_DISK_FILE_USE_H_
