// OccupyStandardDescriptors: opens stdin, stdout and stderr if closed.
//
// Thread: the main one, before any file is opened.
#ifndef NOWCALLS_BASE_STANDARD_DESCRIPTORS_H_
#define NOWCALLS_BASE_STANDARD_DESCRIPTORS_H_

namespace nowcalls {

// Exits with 74 if it cannot.
void OccupyStandardDescriptors();

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_STANDARD_DESCRIPTORS_H_
