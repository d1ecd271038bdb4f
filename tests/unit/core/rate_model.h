// RateModel: what must be answered to requests for calls a second under one rule, kept the simplest
// way: maps of buckets and linear scans. It shares no code with the core.
//
// Thread: one at a time. The rule does not change; the number of sessions online may.
#ifndef NOWCALLS_UNIT_CORE_RATE_MODEL_H_
#define NOWCALLS_UNIT_CORE_RATE_MODEL_H_

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "core/answers.h"
#include "core/rules/rule.h"

namespace nowcalls::testing {

class RateModel {
 public:
  // `guard_max`: requests of the namespace a second; 0: no guard.
  RateModel(const core::Rule& rule, int64_t guard_max) : rule_(rule), guard_max_(guard_max) {}

  int64_t sessions = 0;  // Online.

  core::RateAnswer Request(int64_t now_ms, int64_t count, bool prioritized);
  core::RateAnswer RequestParams(int64_t now_ms, int64_t count,
                                 const std::vector<ParamValue>& values);

 private:
  using Buckets = std::map<int64_t, int64_t>;  // Calls, by number of the bucket.

  // A value that is remembered, with what any algorithm needs.
  struct Value {
    ParamValue value;
    Buckets passed;
    bool seen = false;
    int64_t tokens = 0;
    int64_t filled_ms = 0;
    int64_t last = 0;  // In 1/1024 ms.
  };
  struct Verdict {
    bool passes = false;
    int64_t wait_ms = 0;
    int64_t remaining = 0;
  };

  static int64_t Sum(const Buckets& buckets, int64_t first, int64_t last);
  double CountOf(const ParamValue& value) const;
  int64_t WindowLimit(double count) const;
  bool PassesGuard(int64_t now_ms);
  Value& Use(const ParamValue& value);
  void Forget();
  // Decides on `count` calls for the value, and takes them if `take`.
  Verdict Window(int64_t now_ms, Value* value, int64_t count, bool take) const;
  Verdict TokenBucket(int64_t now_ms, Value* value, int64_t count, bool take) const;
  Verdict LeakyBucket(int64_t now_ms, Value* value, int64_t count, bool take) const;
  Verdict Judge(int64_t now_ms, Value* value, int64_t count, bool take) const;

  core::Rule rule_;
  int64_t guard_max_;
  Buckets guard_;
  Buckets passed_;
  Buckets borrowed_;         // From the bucket after.
  std::list<Value> values_;  // The most recently asked first.
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_UNIT_CORE_RATE_MODEL_H_
