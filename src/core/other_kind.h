// OtherKind: notes that a rule is asked for what it does not say that it limits.
//
// Thread: loop. A rule says by its `grade` whether its count limits calls in progress or calls a
// second. The request decides all the same, as in Sentinel's server. Each such request is counted,
// and the first of a rule logged.
#ifndef NOWCALLS_CORE_OTHER_KIND_H_
#define NOWCALLS_CORE_OTHER_KIND_H_

#include "core/books.h"
#include "core/notices.h"

namespace nowcalls::core {

class OtherKind {
 public:
  OtherKind(Books* books, Notices* notices) : books_(books), notices_(notices) {}

  // The flow, which has an active rule, was asked for a token, or for calls a second.
  void OnAcquire(Flow* flow) {
    if (flow->says_rate) Note(flow);
  }
  void OnRequest(Flow* flow) {
    if (!flow->says_rate) Note(flow);
  }

 private:
  void Note(Flow* flow);

  Books* const books_;
  Notices* const notices_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_OTHER_KIND_H_
