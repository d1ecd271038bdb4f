// Whether a file may be overwritten or cut.
//
// Thread: any.
#ifndef NOWCALLS_STORE_DISK_FILE_USE_H_
#define NOWCALLS_STORE_DISK_FILE_USE_H_

#include <cstdint>
#include <string>

namespace nowcalls::store {

// Whether the file behind `fd`, open for writing, has `names` names and no other open descriptor.
// False if unknown.
bool IsUsedOnlyHere(int fd, uint64_t names);

// Whether `path` is its file's only name and no process has it open; `bytes`: its size. REQUIRES:
// nobody opens the name meanwhile.
bool IsUnused(const std::string& path, uint64_t* bytes);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_DISK_FILE_USE_H_
