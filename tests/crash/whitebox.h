// Whitebox: kills that come from within the server, at a chosen call on its files or at one of
// RocksDB's kill points, in place of a moment that a timer chooses.
//
// Thread: one at a time. The server is nowcalls-faulty-server (faults/faulty_server_main.cc).
#ifndef NOWCALLS_CRASH_WHITEBOX_H_
#define NOWCALLS_CRASH_WHITEBOX_H_

#include <cstdint>
#include <string>

#include "base/prng.h"
#include "support/process.h"

namespace nowcalls::crash {

class Whitebox {
 public:
  // Uses DIR/note, and reads DIR/server.log.
  explicit Whitebox(const std::string& dir) : note_(dir + "/note"), log_(dir + "/server.log") {}

  static std::string Program();

  // What kills the next server: the environment for it.
  testing::Environment Arm(Prng* prng);
  // What Arm chose, for a person: "at call 17", "with odds 1/300".
  const std::string& armed() const { return armed_; }

  // What killed the server that was armed last: "append 000012.log" or "rocksdb db_impl.cc:12";
  // empty: no kill point.
  std::string Fired() const;

  // The same without numbers of files, to be counted.
  static std::string KindOf(const std::string& fired);

 private:
  std::string note_;
  std::string log_;
  uint64_t log_bytes_ = 0;  // Of the log, before the server was armed.
  std::string armed_;
};

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_WHITEBOX_H_
