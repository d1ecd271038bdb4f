package nowcalls

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// The programs of the documents and of examples, run as a reader would run them.

const tree = "../.."

var blockOfGo = regexp.MustCompile("(?ms)^```go\n(.*?)^```")

// sampleServer has the rules of tools/dev run.
func sampleServer(t *testing.T) *served {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(tree, "data", "rules", "*.json"))
	check(t, err)
	var arguments []string
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		arguments = append(arguments, "--rules", name+"="+file)
	}
	return onOwnServer(t, arguments...)
}

// build makes a program of a package or a file.
func build(t *testing.T, name, what string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	said, err := exec.Command("go", "build", "-o", program, what).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %s", name, said)
	}
	return program
}

func run(t *testing.T, program, input string, arguments ...string) string {
	t.Helper()
	command := exec.Command(program, arguments...)
	command.Stdin = strings.NewReader(input)
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", program, err, said)
	}
	return string(said)
}

func TestTheProgramsOfTheDocumentsRunAndLeaveNoTokenBehind(t *testing.T) {
	s := sampleServer(t)
	for _, one := range []struct {
		document string
		says     []string
	}{
		{"tools/manual/go.md", []string{
			`^token \d+, fence \d+\n\d+ of 10000 calls in progress\n$`,
			`^$`,
			`^\d calls left in this window\n$`,
		}},
		{"tools/go/README.md", []string{`^\d+ of 10000 calls in progress\n$`}},
	} {
		text, err := os.ReadFile(filepath.Join(tree, one.document))
		check(t, err)
		blocks := blockOfGo.FindAllStringSubmatch(string(text), -1)
		equal(t, one.document, len(blocks), len(one.says))
		for i, block := range blocks {
			if !strings.Contains(block[1], defaultAddress) {
				t.Fatalf("program %d of %s names no address", i, one.document)
			}
			source := filepath.Join(t.TempDir(), "main.go")
			program := strings.ReplaceAll(block[1], defaultAddress, s.server.address)
			check(t, os.WriteFile(source, []byte(program), 0o600))
			came := run(t, build(t, "program", source), "")
			if !regexp.MustCompile(one.says[i]).MatchString(came) {
				t.Fatalf("program %d of %s says %q", i, one.document, came)
			}
			if formatted := gofmtOf(t, source); formatted != "" {
				t.Errorf("gofmt would change program %d of %s: %s", i, one.document, formatted)
			}
		}
	}
	equal(t, "calls", s.server.nowCalls(t, ID(1001)), int64(0))
}

func gofmtOf(t *testing.T, source string) string {
	t.Helper()
	said, err := exec.Command("gofmt", "-d", source).CombinedOutput()
	if err != nil {
		t.Fatalf("gofmt: %v: %s", err, said)
	}
	return string(said)
}

func TestTheWorkersOfTheExampleShareThePlacesOfTheirRule(t *testing.T) {
	s := sampleServer(t)
	worker := build(t, "worker", "./examples/worker")
	outputs := make([]string, 2)
	var running sync.WaitGroup
	for i := range outputs {
		running.Add(1)
		go func(i int) {
			defer running.Done()
			input := ""
			for n := 0; n < 10; n++ {
				input += fmt.Sprintf("table-%d-%d\n", i, n)
			}
			outputs[i] = run(t, worker, input, "-server", s.server.address, "-seconds", "0.05")
		}(i)
	}
	running.Wait()
	exported := regexp.MustCompile(`table-\d-\d exported, (\d) of 4 in progress, fence \d+\n`)
	lines := exported.FindAllStringSubmatch(strings.Join(outputs, ""), -1)
	if len(lines) != 20 {
		t.Fatalf("exported %d: %s", len(lines), outputs)
	}
	highest := 0
	for _, line := range lines {
		if calls, _ := strconv.Atoi(line[1]); calls > highest {
			highest = calls
		}
	}
	equal(t, "at once", highest, 4)
	equal(t, "calls", s.server.nowCalls(t, ID(3001)), int64(0))
}

func TestBenchTellsCallsASecond(t *testing.T) {
	s := sampleServer(t)
	said := run(t, build(t, "bench", "./bench"), "", "-server", s.server.address, "-seconds", "0.1")
	pattern := regexp.MustCompile(`^1 at once: \d+ a second\n64 at once: \d+ a second\n$`)
	if !pattern.MatchString(said) {
		t.Fatalf("it says %q", said)
	}
}
