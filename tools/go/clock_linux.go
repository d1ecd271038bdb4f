package nowcalls

import (
	"syscall"
	"time"
	"unsafe"
)

const clockBoottime = 7

// now is CLOCK_BOOTTIME, which Go's own times are not: theirs stand still while the machine sleeps.
func now() instant {
	var at syscall.Timespec
	_, _, failed := syscall.RawSyscall(
		syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&at)), 0)
	if failed != 0 {
		panic("nowcalls: CLOCK_BOOTTIME: " + failed.Error())
	}
	return time.Duration(at.Nano())
}
