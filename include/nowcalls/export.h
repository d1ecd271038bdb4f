// NOWCALLS_EXPORT marks what the shared library shows; all else in it is hidden.
#ifndef NOWCALLS_EXPORT_H_
#define NOWCALLS_EXPORT_H_

// Included first by each public header, so that an older language is told by one line.
#if __cplusplus < 202002L
#error "nowcalls needs C++20: compile with -std=c++20 or a later one"
// Ends the compilation: what follows would bury the line above.
#pragma GCC dependency "nowcalls needs C++20"
#endif

#define NOWCALLS_EXPORT [[gnu::visibility("default")]]

#endif  // NOWCALLS_EXPORT_H_
