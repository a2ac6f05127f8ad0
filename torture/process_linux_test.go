package torture

import (
	"os/exec"
	"syscall"
)

// endWithUs ends a server with the tests, even if they are killed.
func endWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
