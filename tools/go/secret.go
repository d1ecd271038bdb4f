package nowcalls

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
)

const (
	secretBytesMax = 256
	fileBytesMax   = 4096
	secretVariable = "NOWCALLS_SECRET_FILE"
	plainSecret    = "the secret needs TLS, or a server on this machine: over a plain connection " +
		"anybody on the way could read it"
)

// Secret is what a client shows its server, which knows the client by it. Nobody else sees it: no
// error and no log has it, and no way of printing a Secret shows it. The zero value is none.
type Secret struct {
	source func() (string, error)
	wrong  error
}

// SecretText is a secret that stays the same.
func SecretText(text string) Secret {
	if why := wrongSecretText(text); why != "" {
		return Secret{wrong: badRequest("secret %s", why)}
	}
	return Secret{source: func() (string, error) { return text, nil }}
}

// SecretFrom is a secret that a function tells anew for each connection. It must be short: the
// connection waits for it, and so does Close.
func SecretFrom(source func() (string, error)) Secret {
	if source == nil {
		return Secret{wrong: badRequest("secret must be a function, not nil")}
	}
	return Secret{source: func() (text string, err error) {
		// What the function says of its failure may have the secret.
		defer func() {
			if recover() != nil {
				text, err = "", badRequest("secret: its function panicked")
			}
		}()
		text, failure := source()
		if failure != nil {
			return "", badRequest("secret: its function failed")
		}
		if why := wrongSecretText(text); why != "" {
			return "", badRequest("secret: its function returned what is no secret: it %s", why)
		}
		return text, nil
	}}
}

// String does not show it.
func (s Secret) String() string {
	if s.source == nil {
		return "no secret"
	}
	return "a secret"
}

// GoString does not show it.
func (s Secret) GoString() string { return s.String() }

func (s Secret) read() (string, error) { return s.source() }

// orOfEnvironment is the secret, or that of the file of the environment.
func (s Secret) orOfEnvironment() (Secret, error) {
	path := os.Getenv(secretVariable)
	if s.wrong != nil || s.source != nil || path == "" {
		return s, s.wrong
	}
	text, err := secretOfFile(path)
	if err != nil {
		return s, err
	}
	return SecretText(text), nil
}

// wrongSecretText says why it is no secret.
func wrongSecretText(text string) string {
	if len(text) < 1 || len(text) > secretBytesMax {
		return "must have 1 to 256 bytes"
	}
	if hasControls(text) {
		return "must not have control characters, such as the end of a line, or surrogates"
	}
	return ""
}

func secretOfFile(path string) (string, error) {
	data, err := readOwn(path)
	if err != nil {
		return "", err
	}
	if len(data) > fileBytesMax {
		return "", badRequest("%s: %s has more than %d bytes", secretVariable, path, fileBytesMax)
	}
	first, _, _ := bytes.Cut(data, []byte("\n"))
	line := strings.TrimSuffix(string(first), "\r")
	if line == "" {
		return "", badRequest("%s: %s has no secret in its first line", secretVariable, path)
	}
	if why := wrongSecretText(line); why != "" {
		return "", badRequest("%s: the first line of %s %s", secretVariable, path, why)
	}
	return line, nil
}

// readOwn judges the file by its descriptor, so that it cannot be replaced in between.
func readOwn(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, cannotRead(path, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, cannotRead(path, err)
	}
	if !isPrivate(info) {
		return nil, badRequest("%s: others than its owner may read or write %s, which has a "+
			"secret; run: chmod 600 %s", secretVariable, path, path)
	}
	data, err := io.ReadAll(io.LimitReader(file, fileBytesMax+1))
	if err != nil {
		return nil, cannotRead(path, err)
	}
	return data, nil
}

func cannotRead(path string, err error) error {
	return badRequest("%s: cannot read %s: %s", secretVariable, path, reasonOf(err))
}

// reasonOf is the system's word for an error, without the path.
func reasonOf(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// isPrivateMode: Kubernetes gives a mounted secret to root and to the group of fsGroup.
func isPrivateMode(mode fs.FileMode, owner, group uint32, groups []int) bool {
	others := mode.Perm() & 0o077
	if others == 0 {
		return true
	}
	for _, own := range groups {
		if others == 0o040 && owner == 0 && int(group) == own {
			return true
		}
	}
	return false
}

// staysHere tells whether the peer of a plain connection is on this machine, as the server judges
// it.
func staysHere(conn net.Conn) bool {
	peer, own := hostOf(conn.RemoteAddr()), hostOf(conn.LocalAddr())
	return peer.IsValid() && (peer.IsLoopback() || peer == own)
}

func hostOf(end net.Addr) netip.Addr {
	tcp, isTCP := end.(*net.TCPAddr)
	if !isTCP {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}
