// Who else uses a file: what may be done to one that RocksDB needs no more.
//
// Thread: any. A reader beside a server, a backup or a copy keeps what it has opened, whatever
// becomes of the name; so a file is written over or cut only when nobody has it open.
#ifndef NOWCALLS_STORE_FILE_USE_H_
#define NOWCALLS_STORE_FILE_USE_H_

#include <cstdint>
#include <string>

namespace nowcalls::store {

// Whether the file behind `fd`, open for writing, has `names` names and is open nowhere else, in no
// process. False also where the file system cannot tell.
bool IsUsedOnlyHere(int fd, uint64_t names);

// The same of the file at `path`, whose size `bytes` gets, with one name and open nowhere at all.
// Nobody opens it by this name meanwhile.
bool IsUnused(const std::string& path, uint64_t* bytes);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_FILE_USE_H_
