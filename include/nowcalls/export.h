// NOWCALLS_EXPORT marks what the shared library shows; all else in it is hidden.
#ifndef NOWCALLS_EXPORT_H_
#define NOWCALLS_EXPORT_H_

#define NOWCALLS_EXPORT [[gnu::visibility("default")]]

#endif  // NOWCALLS_EXPORT_H_
