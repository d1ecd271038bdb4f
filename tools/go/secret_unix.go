//go:build unix

package nowcalls

import (
	"io/fs"
	"os"
	"syscall"
)

func isPrivate(info fs.FileInfo) bool {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return false
	}
	groups, _ := os.Getgroups()
	return isPrivateMode(info.Mode(), stat.Uid, stat.Gid, append(groups, os.Getegid()))
}
