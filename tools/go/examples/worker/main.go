// Command worker exports tables, at most as many at once over all workers together as rule 3001
// allows. Each line of its input is a table.
//
//	tools/dev run                       # serves data/rules/report-batch.json among others
//	cd tools/go
//	seq 20 | go run ./examples/worker & seq 21 40 | go run ./examples/worker; wait
//
// A worker that loses its place stops its export: another worker may have the place by then. The
// place's fence goes with the result, so a store that remembers the highest one refuses a result
// that comes too late.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"nowcalls"
)

var (
	server  = flag.String("server", "127.0.0.1:18730", "address of nowcalls-server")
	atOnce  = flag.Int("at-once", 8, "tables that this worker would export at once")
	seconds = flag.Float64("seconds", 0.5, "time to export one")
)

const nightlyExport = 3001

func main() {
	flag.Parse()
	log.SetFlags(log.Ltime)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	client, err := nowcalls.New(nowcalls.Config{
		Address: *server, Namespace: "report-batch", Fallback: nowcalls.FallbackFail})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	tables := make(chan string)
	go read(ctx, tables)
	var workers sync.WaitGroup
	for i := 0; i < *atOnce; i++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for table := next(ctx, tables); table != ""; table = next(ctx, tables) {
				if err := export(ctx, client, table); err != nil {
					log.Printf("%s: %v", table, err)
				}
			}
		}()
	}
	workers.Wait()
}

func read(ctx context.Context, tables chan<- string) {
	defer close(tables)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		select {
		case tables <- lines.Text():
		case <-ctx.Done():
			return
		}
	}
}

// next is "" at the end.
func next(ctx context.Context, tables <-chan string) string {
	select {
	case table := <-tables:
		return table
	case <-ctx.Done():
		return ""
	}
}

// export waits for a place as long as it takes, through restarts of the server, too.
func export(ctx context.Context, client *nowcalls.Client, table string) error {
	for {
		err := client.Do(ctx, nowcalls.ID(nightlyExport),
			func(ctx context.Context, permit *nowcalls.Permit) error {
				return work(ctx, permit, table)
			},
			nowcalls.Wait(time.Minute))
		var full *nowcalls.Refused
		var away *nowcalls.Unavailable
		var unknown *nowcalls.OutcomeUnknown
		switch {
		case errors.As(err, &full) && full.RefusedBy == "queue_timeout":
		case errors.As(err, &away), errors.As(err, &unknown):
			log.Printf("%s waits: %v", table, err)
		default:
			return err
		}
	}
}

// work stands for the export. ctx ends when the place is lost.
func work(ctx context.Context, permit *nowcalls.Permit, table string) error {
	select {
	case <-time.After(time.Duration(*seconds * float64(time.Second))):
		fmt.Printf("%s exported, %d of %d in progress, fence %d\n",
			table, permit.NowCalls(), permit.Level(), permit.Fence())
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopped: %w %s", ctx.Err(), permit.LostReason())
	}
}
