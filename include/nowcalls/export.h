// NOWCALLS_EXPORT: visible in the shared library; all else is hidden.
#ifndef NOWCALLS_EXPORT_H_
#define NOWCALLS_EXPORT_H_

#if __cplusplus < 202002L
#error "nowcalls needs C++20: compile with -std=c++20 or a later one"
// Ends the compilation before errors that would bury the line above.
#pragma GCC dependency "nowcalls needs C++20"
#endif

#define NOWCALLS_EXPORT [[gnu::visibility("default")]]

#endif  // NOWCALLS_EXPORT_H_
