// EarlyCommit: whether a batch goes to the commit thread before the turn that fills it has ended.
//
// Thread: loop. A batch is handed over at the end of a turn, and in a closed loop that can become a
// column: all clients wait for one batch; when it is done they are all answered, and all their next
// requests make up one batch again. Loop, clients and disk then take turns where each could work
// beside the others. It is seen by a commit whose end the loop did nothing but wait for. Then half
// as much goes ahead as the thread got last when it had nothing to do, and the column is broken in
// two. Not where commits are slow: two of them, one after the other, take longer than what the loop
// does meanwhile.
#ifndef NOWCALLS_SERVER_EARLY_COMMIT_H_
#define NOWCALLS_SERVER_EARLY_COMMIT_H_

#include <algorithm>
#include <cstddef>

namespace nowcalls::server {

class EarlyCommit {
 public:
  // A batch of fewer records than this is not worth it.
  explicit EarlyCommit(size_t records_min) : records_min_(records_min) {}

  // A batch goes to the commit thread, which had none.
  void Began(size_t records) { records_ = records; }

  // The loop has ended a turn that brought the end of a commit. `waited`: and no input.
  void Ended(bool waited) { waited_ = waited; }

  // Whether a batch of so many records should go now, if the commit thread has none and is quick.
  bool Due(size_t records) const {
    return waited_ && records >= std::max(records_min_, records_ / 2);
  }

 private:
  const size_t records_min_;
  size_t records_ = 0;
  bool waited_ = false;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_EARLY_COMMIT_H_
